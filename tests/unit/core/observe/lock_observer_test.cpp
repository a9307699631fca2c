// What list, watch and the console are told of locks.

#include "lockkeeper/internal/lock_observer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using Kind = LockObserver::Kind;

constexpr Instant start{1h};

Holder holder(std::string owner, std::optional<Fence> fence, std::string grant = {}) {
  Holder made;
  made.owner = std::move(owner);
  made.fence = fence;
  made.grantId = std::move(grant);
  return made;
}

/// Each change as a text: "taken k by ann, turn 1".
std::vector<std::string> texts(const std::vector<LockObserver::Change>& changes) {
  std::vector<std::string> all;
  for (const auto& [kind, grant, former, expired] : changes) {
    const char* const name = kind == Kind::held     ? "held "
                             : kind == Kind::taken  ? "taken "
                             : kind == Kind::passed ? "passed "
                                                    : "freed ";
    all.push_back(name + grant.key + " by " + grant.holder.owner + ", turn " + std::to_string(grant.turns) +
                  (former ? ", before " + former->holder.owner : "") + (expired ? ", expired" : ""));
  }
  return all;
}

using Texts = std::vector<std::string>;

TEST(LockObserver, TellsWhatHasChangedSinceTheLastLook) {
  LockObserver observer;
  EXPECT_EQ(texts(observer.compare({{{"k", ""}, holder("ann", 1)}}, start, true)),
            Texts{"held k by ann, turn 1"});
  EXPECT_EQ(texts(observer.compare({{{"k", ""}, holder("ann", 1)}}, start + 1s, false)), Texts{});
  EXPECT_EQ(texts(observer.compare({{{"k", ""}, holder("bob", 2)}, {{"a", ""}, holder("ann", 1)}}, start + 2s,
                                   false)),
            (Texts{"taken a by ann, turn 1", "passed k by bob, turn 2, before ann"}));
  EXPECT_EQ(texts(observer.compare({{{"a", ""}, holder("ann", 1)}}, start + 3s, false)),
            Texts{"freed k by bob, turn 2"});
  EXPECT_EQ(texts(observer.compare({{{"a", ""}, holder("ann", 1)}, {{"k", ""}, holder("ann", 3)}}, start + 4s,
                                   false)),
            Texts{"taken k by ann, turn 3"});
  const auto& held = observer.held();
  ASSERT_EQ(held.size(), 2U);
  EXPECT_EQ(held.at({"a", ""}).since, start + 2s);
  EXPECT_FALSE(held.at({"a", ""}).sinceBefore);
}

TEST(LockObserver, NobodyKnowsSinceWhenWhatWasFoundAfterAGap) {
  LockObserver observer;
  observer.compare({{{"k", ""}, holder("ann", 1)}}, start, false);
  const auto changes =
      observer.compare({{{"k", ""}, holder("ann", 1)}, {{"l", ""}, holder("bob", 1)}}, start + 1s, true);
  EXPECT_EQ(texts(changes), Texts{"held l by bob, turn 1"});
  EXPECT_TRUE(observer.held().at({"l", ""}).sinceBefore);
  EXPECT_FALSE(observer.held().at({"k", ""}).sinceBefore) << "seen before the gap";
}

/// One key that is looked at each second: whoever it names holds it for so long if he does not renew.
class OneKey {
 public:
  Texts look(const std::string& owner, std::chrono::milliseconds remaining = {}) {
    std::map<HolderName, Holder> holders;
    if (!owner.empty()) {
      Holder& present = holders[{"k", ""}] = holder(owner, {}, owner);
      present.remaining = remaining;
    }
    return texts(observer_.compare(std::move(holders), now_ += 1s, false));
  }

 private:
  LockObserver observer_;
  Instant now_ = start;
};

TEST(LockObserver, TellsALeaseThatRanOutFromOneThatWasReleased) {
  OneKey key;
  for (const auto remaining : {4s, 3s, 2s, 1s}) key.look("ann", remaining);
  EXPECT_EQ(key.look(""), Texts{"freed k by ann, turn 1, expired"});
  for (const auto remaining : {4s, 3s, 4s, 3s}) key.look("ann", remaining);
  EXPECT_EQ(key.look(""), Texts{"freed k by ann, turn 2"});
  for (const auto remaining : {4s, 3s, 2s, 1s}) key.look("ann", remaining);
  EXPECT_EQ(key.look("bob", 4s), Texts{"passed k by bob, turn 4, before ann, expired"});
  EXPECT_EQ(key.look(""), Texts{"freed k by bob, turn 4"});
}

TEST(LockObserver, OfAShortLeaseNobodyKnowsHowItEnded) {
  OneKey key;
  key.look("ann", 1s);
  EXPECT_EQ(key.look(""), Texts{"freed k by ann, turn 1"});
}

TEST(LockObserver, AGrantHasANumberWhileItIsHeld) {
  LockObserver observer;
  const auto first = observer.compare({{{"k", ""}, holder("ann", 1)}}, start, false).front().grant.id;
  ASSERT_NE(observer.grant(first), nullptr);
  EXPECT_EQ(observer.grant(first)->holder.owner, "ann");
  observer.compare({{{"k", ""}, holder("ann", 2)}}, start, false);
  EXPECT_EQ(observer.grant(first), nullptr);
}

TEST(LockObserver, WhatAStoreDoesNotShowForAWhileIsKept) {
  LockObserver observer;
  observer.compare({{{"k", ""}, holder("ann@host:1", 7, "g")}}, start, false);
  EXPECT_TRUE(observer.compare({{{"k", ""}, holder("ann@", {}, "g")}}, start, false).empty());
  EXPECT_EQ(observer.held().at({"k", ""}).holder.owner, "ann@host:1");
  EXPECT_EQ(observer.held().at({"k", ""}).holder.fence, 7U);
}

TEST(LockListing, HasAllHoldersOfAKeyAndHowManyWait) {
  const auto store = std::make_shared<MemoryDriver>();
  ManagerOptions options;
  options.owner = "ann";
  LockManager manager(store, options);
  const Lock lock = manager.lock("a:1");
  LockOptions share;
  share.share = Share{.weight = 1, .limit = 3};
  const Lock one = manager.lock("a:2", share), two = manager.lock("a:2", share), other = manager.lock("b");
  const LockListing found = listLocks(*store, "a:", [] { return true; });
  std::vector<std::string> keys;
  for (const auto& [name, each] : found.holders) keys.push_back(name.first + " " + each.owner);
  EXPECT_EQ(keys, (std::vector<std::string>{"a:1 ann", "a:2 ann", "a:2 ann"}));
  EXPECT_TRUE(found.tellsWaiters);
  EXPECT_EQ(found.waiting("a:1"), 0U);
  int asked = 0;
  EXPECT_LT(listLocks(*store, "", [&] { return ++asked < 2; }).holders.size(), 3U) << "it was told to stop";
}

}  // namespace
}  // namespace lockkeeper::test
