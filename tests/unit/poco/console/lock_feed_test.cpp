#include "console/lock_feed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
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
class StoreWithoutMemory final : public testing::PlainDecorator, public Browsable {
 public:
  StoreWithoutMemory() : PlainDecorator(std::make_shared<MemoryDriver>()) {}

  void list(std::string_view, const std::function<bool(std::string_view key, const Holder& holder)>& visit,
            Instant) override {
    if (failing_ && !testing::FailingAllocation::happened()) allFailed = true;
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

  std::atomic<bool> allFailed = false;

 private:
  std::optional<testing::FailingAllocation> failing_;
  std::uint64_t looks_ = 0;
};

TEST(LockFeed, WithoutMemoryALookIsLeftOut) {
  const auto store = std::make_shared<StoreWithoutMemory>();
  LockFeed feed({.store = store, .scope = {}, .interval = 1ms, .mostViewers = 1});
  ASSERT_TRUE(feed.enter());
  ASSERT_TRUE(test::waitUntil([&] { return store->allFailed.load(); }));
  const auto soon = [] { return saturatingAdd(systemClock()->now(), 20s); };
  const LockFeed::Update first = feed.next(0, soon());
  EXPECT_TRUE(first.text.starts_with(R"({"all":true,"fault":null)")) << first.text;
  EXPECT_NE(first.text.find(R"("order:2","a holder with a long name at look )"), std::string::npos);
  EXPECT_NE(feed.next(first.version, soon()).text.find(R"("gone":[)"), std::string::npos);
  feed.leave();
}

}  // namespace
}  // namespace lockkeeper::poco
