// Callers whose orders are booked together, when the answer to the COMMIT does not come: what each of them is
// told, and that who orders again buys once.

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fault_proxy.h"
#include "free_port.h"
#include "group_faults.h"
#include "shop.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using inventory::Deduction;
using inventory::StockService;
using inventory::Way;
using ::testing::ElementsAre;

/// Counts the callers that wait for others: those who wait with one mutex, as nobody else does.
class CountingClock final : public Clock {
 public:
  int waiting() const {
    const std::lock_guard guard(mutex_);
    int most = 0;
    for (const auto& [mutex, count] : waiting_) most = std::max(most, count);
    return most;
  }

  Instant now() const noexcept override { return systemClock()->now(); }
  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    count(held, 1);
    systemClock()->wait(held, wakeUp, until);
    count(held, -1);
  }

 private:
  void count(const std::unique_lock<std::mutex>& held, int change) {
    const std::lock_guard guard(mutex_);
    waiting_[held.mutex()] += change;
  }

  mutable std::mutex mutex_;
  std::map<const std::mutex*, int> waiting_;
};

class GroupInDoubt : public ::testing::TestWithParam<Backend> {
 protected:
  struct Wanted {
    std::string id;
    std::int64_t quantity = 1;
  };
  /// Two of them can be booked, and one that wants more than there is never can.
  const std::vector<Wanted> wanted{{"a"}, {"b", 2}, {"a"}, {"old"}, {"too many", 1000}};

  GroupInDoubt() {
    near.restock("pen", 10);
    EXPECT_EQ(near.deduct("pen", 1, "old"), Deduction::deducted);
  }

  std::string answer(const Wanted& order) {
    try {
      return toString(distant.deduct("pen", order.quantity, order.id));
    } catch (const std::exception&) {
      return nameOf(std::current_exception());
    }
  }
  void begin(const Wanted& order) {
    answers.push_back(std::async(std::launch::async, [this, order] { return answer(order); }));
  }

  /// Those that have come while the COMMIT of the first order was under way are a group. Returns when its own
  /// COMMIT is, and another order waits behind it.
  void stopAtTheCommitOfAGroup() {
    const ProxyFault stop{.kind = ProxyFault::Kind::step, .text = commitTo(GetParam())};
    proxy.set(stop);
    begin({"first"});
    ASSERT_TRUE(waitUntil([&] { return proxy.fired() == 1; }));
    int come = 0;
    for (const Wanted& each : wanted) {
      begin(each);
      ++come;
      ASSERT_TRUE(waitUntil([&] { return clock->waiting() == come; }));
    }
    proxy.set(stop);
    EXPECT_EQ(answers.front().get(), "deducted");
    answers.erase(answers.begin());
    ASSERT_TRUE(waitUntil([&] { return proxy.fired() == 1; }));
    begin({"late"});
    // Besides those of the group, one of whom waits for the server.
    ASSERT_TRUE(waitUntil([&] { return clock->waiting() == come; }));
  }

  Answers told() {
    Answers all;
    for (auto& each : answers) all.push_back(each.get());
    return all;
  }

  Answers ordersAgain() {
    proxy.leadTo(server.port());
    proxy.passThrough();
    Answers all;
    for (const Wanted& each : wanted) all.push_back(answer(each));
    all.push_back(answer({"late"}));
    return all;
  }

  /// The answer does not arrive.
  void letTheServerCommit() {
    proxy.set({.kind = ProxyFault::Kind::dropReplies});
    ASSERT_TRUE(waitUntil([&] { return shop.booked("a"); }));
  }

  void expectEachIsSoldOnce() {
    // "old", "first", "a", two for "b", and "late".
    EXPECT_EQ(shop.level("pen"), 10 - 6);
    EXPECT_EQ(shop.orders("pen"), 5);
    EXPECT_EQ(shop.ledger("pen"), shop.level("pen"));
  }

  StockServer& server = serverOf(GetParam());
  Shop shop{GetParam()};
  FaultProxy proxy{server.port()};
  const std::shared_ptr<CountingClock> clock = std::make_shared<CountingClock>();
  StockService near = shop.service(Way::conditionalUpdate);
  StockService distant{shop.uriBy(proxy.port()),
                       shop.manager(),
                       Way::conditionalUpdate,
                       {.operationTimeout = std::chrono::seconds{20}, .environment = {.clock = clock}}};
  std::vector<std::future<std::string>> answers;
};

TEST_P(GroupInDoubt, TellsThoseThatMayBeBookedAndNoOthers) {
  ASSERT_NO_FATAL_FAILURE(stopAtTheCommitOfAGroup());
  proxy.leadTo(freePort());
  ASSERT_NO_FATAL_FAILURE(letTheServerCommit());
  proxy.endConnections(Ending::rst);
  EXPECT_THAT(told(), ElementsAre("unknown", "unknown", "unknown", "unknown", "unavailable", "unavailable"));
  EXPECT_THAT(ordersAgain(),
              ElementsAre("duplicate", "duplicate", "duplicate", "duplicate", "sold out", "deducted"));
  expectEachIsSoldOnce();
}

TEST_P(GroupInDoubt, WhoseCommitDidNotArriveBuysWhenItOrdersAgain) {
  ASSERT_NO_FATAL_FAILURE(stopAtTheCommitOfAGroup());
  proxy.leadTo(freePort());
  proxy.endConnections(Ending::rst);
  EXPECT_THAT(told(), ElementsAre("unknown", "unknown", "unknown", "unknown", "unavailable", "unavailable"));
  EXPECT_FALSE(shop.booked("a") || shop.booked("b") || shop.booked("late"));
  EXPECT_THAT(ordersAgain(),
              ElementsAre("deducted", "deducted", "duplicate", "duplicate", "sold out", "deducted"));
  expectEachIsSoldOnce();
}

TEST_P(GroupInDoubt, IsNotBookedAgainWhenTheDatabaseTellsThatItWas) {
  ASSERT_NO_FATAL_FAILURE(stopAtTheCommitOfAGroup());
  ASSERT_NO_FATAL_FAILURE(letTheServerCommit());
  proxy.passThrough();
  proxy.endConnections(Ending::rst);
  EXPECT_THAT(told(), ElementsAre("deducted", "deducted", "duplicate", "duplicate", "sold out", "deducted"));
  expectEachIsSoldOnce();
}

TEST_P(GroupInDoubt, IsBookedAgainWhenTheDatabaseTellsThatItWasNot) {
  ASSERT_NO_FATAL_FAILURE(stopAtTheCommitOfAGroup());
  proxy.endConnections(Ending::rst);
  EXPECT_THAT(told(), ElementsAre("deducted", "deducted", "duplicate", "duplicate", "sold out", "deducted"));
  expectEachIsSoldOnce();
}

INSTANTIATE_TEST_SUITE_P(All, GroupInDoubt, ::testing::ValuesIn(allServers),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
