#include "console/lock_feed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <typeinfo>

#include "allocations.h"
#include "decorators.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/memory/memory_driver.h"
#include "wait_until.h"

namespace lockkeeper::poco {
namespace {

using namespace std::chrono_literals;

/// Shows other locks at each look, and after each one lets another allocation of whoever looks fail, until
/// all have failed once.
class StoreWithoutMemory final : public test::PlainDecorator, public Browsable {
 public:
  StoreWithoutMemory() : PlainDecorator(std::make_shared<MemoryDriver>()) {}

  void list(std::string_view, const std::function<bool(std::string_view key, const Holder& holder)>& visit,
            Instant) override {
    if (failing_ && !test::FailingAllocation::happened()) allFailed = true;
    failing_.reset();
    const std::string look = std::to_string(++looks_);
    for (const std::string key : {"order:1", "order:2", "a key that is too long for a short text"}) {
      Holder holder;
      holder.owner = "a holder with a long name at look " + look;
      holder.fence = looks_;
      visit(key, holder);
    }
    if (!allFailed) failing_.emplace(looks_ - 1);
  }

  void* findCapability(const std::type_info& type) noexcept override {
    return type == typeid(Browsable) ? static_cast<Browsable*>(this) : nullptr;
  }

  bool allFailed = false;

 private:
  std::optional<test::FailingAllocation> failing_;
  std::uint64_t looks_ = 0;
};

std::uint64_t versionIn(const std::string& answer) {
  return std::stoull(answer.substr(answer.find(':') + 1));
}

TEST(LockFeed, WithoutMemoryALookIsLeftOut) {
  const auto store = std::make_shared<StoreWithoutMemory>();
  LockFeed feed({.store = store, .scope = {}, .interval = 1ms});
  std::string all;
  ASSERT_TRUE(test::waitUntil([&] {
    try {
      all = feed.changesAfter(0);
    } catch (const std::bad_alloc&) {  // as meant
    }
    return store->allFailed;
  }));
  ASSERT_TRUE(test::waitUntil([&] {
    all = feed.changesAfter(0);
    return all.find(R"("order:2","a holder with a long name at look )") != std::string::npos;
  }));
  EXPECT_NE(all.find(R"("fault":null)"), std::string::npos) << all;
  EXPECT_NE(all.find(R"("all":true)"), std::string::npos) << all;
  ASSERT_TRUE(test::waitUntil(
      [&] { return feed.changesAfter(versionIn(all)).find(R"("gone":[)") != std::string::npos; }));
}

/// How often its locks were listed.
class CountedStore final : public test::PlainDecorator, public Browsable {
 public:
  CountedStore() : PlainDecorator(std::make_shared<MemoryDriver>()) {}

  void list(std::string_view, const std::function<bool(std::string_view key, const Holder& holder)>&,
            Instant) override {
    ++looks;
  }
  void* findCapability(const std::type_info& type) noexcept override {
    return type == typeid(Browsable) ? static_cast<Browsable*>(this) : nullptr;
  }

  int looks = 0;
};

TEST(LockFeed, AsksTheStoreOnceForAllWhoAskInAnInterval) {
  const auto store = std::make_shared<CountedStore>();
  LockFeed feed({.store = store, .scope = {}, .interval = 1h});
  EXPECT_EQ(store->looks, 0) << "nobody has asked";
  const std::uint64_t version = versionIn(feed.changesAfter(0));
  const std::string again = feed.changesAfter(version);
  EXPECT_EQ(versionIn(again), version);
  EXPECT_NE(again.find(R"("changes":[])"), std::string::npos) << again;
  EXPECT_EQ(store->looks, 1);
  for (const std::uint64_t other : {version + 1, version - 1, std::uint64_t{1}}) {
    EXPECT_NE(feed.changesAfter(other).find(R"("all":true)"), std::string::npos)
        << other << " is a version of another process";
  }
}

/// Two locks, whose ends come nearer with each look; then they are gone.
class EndingStore final : public test::PlainDecorator, public Browsable {
 public:
  EndingStore() : PlainDecorator(std::make_shared<MemoryDriver>()) {}

  void list(std::string_view, const std::function<bool(std::string_view key, const Holder& holder)>& visit,
            Instant) override {
    if (left_.empty()) return;
    Holder holder;
    holder.remaining = left_.front();
    left_.pop_front();
    visit("stuck", holder);
    holder.remaining = 1h;
    visit("released", holder);
  }
  void* findCapability(const std::type_info& type) noexcept override {
    return type == typeid(Browsable) ? static_cast<Browsable*>(this) : nullptr;
  }

 private:
  std::deque<std::chrono::milliseconds> left_{1h, 10ms};
};

TEST(LockFeed, TellsWhichLeasesRanOut) {
  LockFeed feed({.store = std::make_shared<EndingStore>(), .scope = {}, .interval = 1ms});
  ASSERT_TRUE(
      test::waitUntil([&] { return feed.changesAfter(0).find(R"("rows":[])") != std::string::npos; }));
  const std::string activity = feed.activity("released");
  const std::size_t lost = activity.find(R"("lost":[["stuck",[)");
  ASSERT_NE(lost, std::string::npos) << activity;
  EXPECT_NE(activity.find(R"("expired")", lost), std::string::npos) << activity;
  EXPECT_EQ(activity.find("released", lost), std::string::npos) << activity;
}

TEST(LockFeed, TheVersionsOfTwoProcessesAreFarApart) {
  const auto firstVersion = [] {
    LockFeed feed({.store = std::make_shared<CountedStore>(), .scope = {}, .interval = 1h});
    return versionIn(feed.changesAfter(0));
  };
  const std::uint64_t one = firstVersion();
  const std::uint64_t other = firstVersion();
  EXPECT_GT(std::max(one, other) - std::min(one, other), 1'000'000'000U) << "looks";
  EXPECT_LT(std::max(one, other), std::uint64_t{1} << 53) << "the page holds it as a number of JavaScript";
}

}  // namespace
}  // namespace lockkeeper::poco
