#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/error.h"
#include "lockkeeper/testing/contract/driver_fixture.h"

// What stores that count permits must keep, where nobody waits.

namespace lockkeeper::testing {

TEST_P(DriverContract, SharesAKeyUpToItsLimit) {
  if (!GetParam().permits) GTEST_SKIP() << noPermits;
  const Claimant one = sharer(1, 3);
  const Claimant two = sharer(2, 3);
  ASSERT_TRUE(grant(one));
  ASSERT_TRUE(grant(two));
  EXPECT_TRUE(isBusy(sharer(1, 3)));
  EXPECT_EQ(release(one), ReleaseOutcome::released);
  EXPECT_TRUE(isBusy(sharer(2, 3))) << "one permit is free";
  const Claimant next = sharer(1, 3);
  EXPECT_TRUE(grant(next));
  EXPECT_EQ(release(two), ReleaseOutcome::released);
  EXPECT_EQ(release(next), ReleaseOutcome::released);
  EXPECT_FALSE(holder(key));
}

TEST_P(DriverContract, CountsAShareThatIsSentAgainOnce) {
  if (!GetParam().permits) GTEST_SKIP() << noPermits;
  const Claimant who = sharer(1, 2);
  const Claimant whole = sharer(2, 2);
  ASSERT_TRUE(grant(who));
  ASSERT_TRUE(grant(who, longTtl, true));
  ASSERT_TRUE(grant(who));
  EXPECT_EQ(shareHolders().size(), 1U);
  const Claimant other = sharer(1, 2);
  EXPECT_TRUE(grant(other)) << "one permit is free";
  EXPECT_TRUE(grant(who, longTtl, true)) << "also when nothing is free";
  EXPECT_EQ(release(other), ReleaseOutcome::released);
  EXPECT_EQ(release(who), ReleaseOutcome::released);
  EXPECT_EQ(release(who), ReleaseOutcome::notOwner);
  const auto first = grant(whole);
  const auto again = grant(whole, longTtl, true);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->fence, again->fence);
}

TEST_P(DriverContract, SharesAndTheWholeKeyExcludeEachOther) {
  if (!GetParam().permits) GTEST_SKIP() << noPermits;
  const Claimant mutex{key};
  const Claimant reader = sharer(1, 5);
  ASSERT_TRUE(grant(mutex));
  EXPECT_TRUE(isBusy(reader));
  EXPECT_TRUE(isBusy(sharer(5, 5)));
  EXPECT_EQ(release(reader), ReleaseOutcome::notOwner);
  EXPECT_EQ(renew(reader), RenewOutcome::notOwner);
  EXPECT_TRUE(shareHolders().empty());
  EXPECT_EQ(release(mutex), ReleaseOutcome::released);
  ASSERT_TRUE(grant(reader));
  EXPECT_TRUE(isBusy(mutex));
  EXPECT_EQ(release(mutex), ReleaseOutcome::notOwner);
  EXPECT_EQ(renew(mutex), RenewOutcome::notOwner);
  EXPECT_EQ(release(reader), ReleaseOutcome::released);
  EXPECT_TRUE(grant(mutex));
}

TEST_P(DriverContract, RefusesAnotherLimitAndNamesBoth) {
  if (!GetParam().permits) GTEST_SKIP() << noPermits;
  const Claimant holds = sharer(1, 3);
  ASSERT_TRUE(grant(holds));
  const Claimant other = sharer(1, 4);
  try {
    (void)ask(other);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.what(),
              "the key '" + key +
                  "' has a limit of 3 permits for those who hold it, not 4: all who share a key must "
                  "name the same limit");
  }
  if (GetParam().waitable) {
    EXPECT_THROW((void)waitFor(other, farAway()).get(), ConfigError);
  }
  EXPECT_EQ(shareHolders().size(), 1U);
  EXPECT_EQ(release(holds), ReleaseOutcome::released);
  EXPECT_TRUE(grant(other)) << "nobody holds it with the former limit";
}

TEST_P(DriverContract, EachShareHasItsOwnLease) {
  if (!GetParam().permits) GTEST_SKIP() << noPermits;
  const Claimant dies = sharer(1, 2);
  const Claimant lives = sharer(1, 2);
  ASSERT_TRUE(grant(lives));
  const Instant asked = GetParam().clock->now();
  ASSERT_TRUE(grant(dies, shortTtl()));
  GetParam().advance(shortTtl() / 2);
  EXPECT_EQ(renew(lives), RenewOutcome::renewed);
  const std::size_t holders = shareHolders().size();
  if (GetParam().clock->now() < asked + shortTtl()) {
    EXPECT_EQ(holders, 2U);
  }
  GetParam().advance(shortTtl());
  EXPECT_EQ(shareHolders().size(), 1U) << "the dead one is not counted any more";
  EXPECT_EQ(renew(dies), RenewOutcome::notOwner);
  EXPECT_EQ(release(dies), ReleaseOutcome::notOwner);
  const Claimant next = sharer(1, 2);
  const Instant askedNext = now();
  EXPECT_TRUE(grant(next, shortTtl()));
  EXPECT_TRUE(isBusyBefore(askedNext + shortTtl(), sharer(1, 2)));
  EXPECT_EQ(release(lives), ReleaseOutcome::released);
  // The longest lease has been given back: what is left ends with the other one.
  EXPECT_TRUE(expires(key, shortTtl()));
  EXPECT_TRUE(grant({key})) << "by the whole key, too";
}

TEST_P(DriverContract, AShareThatIsRenewedForLessEndsSooner) {
  if (!GetParam().permits) GTEST_SKIP() << noPermits;
  const Claimant who = sharer(1, 2);
  ASSERT_TRUE(grant(who));
  ASSERT_EQ(renew(who, shortTtl()), RenewOutcome::renewed);
  EXPECT_TRUE(expires(key, shortTtl()));
  EXPECT_TRUE(grant({key}));
}

TEST_P(DriverContract, AReadersFenceIsBetweenTheWritersBeforeAndAfterIt) {
  if (!GetParam().permits) GTEST_SKIP() << noPermits;
  if (GetParam().fence == FencePromise::none) GTEST_SKIP() << "the driver promises no fence";
  std::vector<Fence> fences;
  const auto next = [&](const Claimant& who) {
    const auto granted = grant(who);
    ASSERT_TRUE(granted && granted->fence);
    fences.push_back(*granted->fence);
    ASSERT_EQ(release(who), ReleaseOutcome::released);
  };
  next(sharer(1, 9));  // before any writer
  next({key});
  next(sharer(1, 9));
  next(sharer(1, 9));
  next(sharer(9, 9));
  next(sharer(1, 9));
  next({key});
  ASSERT_EQ(fences.size(), 7U);
  EXPECT_GT(fences[1], fences[0]);
  EXPECT_GE(fences[2], fences[1]);
  EXPECT_GE(fences[3], fences[2]);
  EXPECT_GT(fences[4], fences[3]);
  EXPECT_GE(fences[5], fences[4]);
  EXPECT_GT(fences[6], fences[5]);
}

TEST_P(DriverContract, TellsWhoHasHowManyPermits) {
  if (!GetParam().permits) GTEST_SKIP() << noPermits;
  EXPECT_TRUE(shareHolders().empty());
  Claimant one = sharer(1, 5);
  one.owner = "first:1";
  Claimant three = sharer(3, 5);
  three.owner = "second:2";
  ASSERT_TRUE(grant(one, std::chrono::seconds{20}));
  ASSERT_TRUE(grant(three));
  std::vector<Holder> holders = shareHolders();
  ASSERT_EQ(holders.size(), 2U);
  std::sort(holders.begin(), holders.end(), [](const auto& a, const auto& b) { return a.owner < b.owner; });
  EXPECT_EQ(holders[0].owner, one.owner);
  EXPECT_EQ(holders[0].share, one.share);
  EXPECT_LE(holders[0].remaining, std::chrono::seconds{20});
  EXPECT_GT(holders[0].remaining, std::chrono::seconds{10});
  EXPECT_EQ(holders[1].owner, three.owner);
  EXPECT_EQ(holders[1].share, three.share);
  const auto grantOf = [](const Holder& holder) { return std::pair(holder.grantId, holder.fence); };
  EXPECT_NE(grantOf(holders[0]), grantOf(holders[1]));
  const auto shown = holder(key);
  ASSERT_TRUE(shown);
  const Holder& same = shown->owner == one.owner ? holders[0] : holders[1];
  EXPECT_EQ(shown->owner, same.owner) << "any one of them";
  EXPECT_EQ(shown->share, same.share);
  EXPECT_EQ(shown->grantId, same.grantId);
  if (!GetParam().browsable) return;
  std::vector<std::string> listed;
  capability<Browsable>(*driver)->list(
      key,
      [&](std::string_view, const Holder& each) {
        listed.push_back(each.owner);
        return true;
      },
      deadline());
  EXPECT_EQ(listed, std::vector{shown->owner});
}

TEST_P(DriverContract, ChangesTheLimitAndNobodyLosesAShare) {
  if (!GetParam().permits) GTEST_SKIP() << noPermits;
  auto& permits = *capability<Permits>(*driver);
  EXPECT_FALSE(permits.resize(key, 2, deadline())) << "nobody has a share";
  const std::array holds{sharer(1, 3), sharer(1, 3), sharer(1, 3)};
  for (const Claimant& each : holds) ASSERT_TRUE(grant(each));
  ASSERT_TRUE(permits.resize(key, 2, deadline()));
  EXPECT_EQ(shareHolders().size(), 3U);
  EXPECT_THROW((void)ask(sharer(1, 3)), ConfigError);
  const Claimant next = sharer(1, 2);
  for (const Claimant& each : holds) {
    EXPECT_EQ(renew(each), RenewOutcome::renewed);
    EXPECT_EQ(grant(next).has_value(), &each == &holds[2]) << "one of two is free only then";
    EXPECT_EQ(release(each), ReleaseOutcome::released);
  }
  EXPECT_EQ(release(next), ReleaseOutcome::released);
  EXPECT_FALSE(holder(key));
}

TEST_P(DriverContract, BreaksOneShareOrAll) {
  if (!GetParam().permits) GTEST_SKIP() << noPermits;
  if (!GetParam().breakable) GTEST_SKIP() << notBreakable;
  const Claimant longest = sharer(1, 3);
  const Claimant others[] = {sharer(1, 3), sharer(1, 3)};
  ASSERT_TRUE(grant(longest, longTtl * 2));
  for (const Claimant& each : others) ASSERT_TRUE(grant(each));
  const auto shown = holder(key);
  ASSERT_TRUE(shown);
  EXPECT_TRUE(breakLock(key, &*shown));
  EXPECT_FALSE(breakLock(key, &*shown)) << "it is gone";
  EXPECT_EQ(renew(longest), RenewOutcome::notOwner);
  for (const Claimant& each : others) EXPECT_EQ(renew(each), RenewOutcome::renewed);
  EXPECT_TRUE(breakLock(key));
  for (const Claimant& each : others) EXPECT_EQ(renew(each), RenewOutcome::notOwner);
  EXPECT_FALSE(holder(key));
}

TEST_P(DriverContract, CountsPermitsAsAModelDoesInRandomSteps) {
  if (!GetParam().permits) GTEST_SKIP() << noPermits;
  constexpr std::uint32_t limit = 7;
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  std::vector<Claimant> held;  // the model: nobody's lease ends
  std::uint32_t used = 0;
  for (int step = 0; step < 400; ++step) {
    LockDriver& client = below(2) == 0 ? *driver : *otherClient;
    const std::uint32_t what = below(10);
    if (what < 5) {
      Claimant who = sharer(1 + below(limit), limit);
      if (below(8) == 0) who.share.reset();
      const std::uint32_t weight = who.share ? who.share->weight : limit;
      const bool fits = used + weight <= limit;
      ASSERT_EQ(std::holds_alternative<Granted>(ask(client, who, longTtl, below(4) == 0)), fits) << step;
      if (!fits) continue;
      used += weight;
      held.push_back(who);
    } else if (!held.empty()) {
      const Claimant who = held[below(static_cast<std::uint32_t>(held.size()))];
      if (what == 5) {
        ASSERT_TRUE(std::holds_alternative<Granted>(ask(client, who, longTtl, true))) << step;
      } else if (what == 6) {
        ASSERT_EQ(renew(who), RenewOutcome::renewed) << step;
      } else {
        ASSERT_EQ(client.release(who.claim(), deadline()), ReleaseOutcome::released) << step;
        ASSERT_EQ(client.release(who.claim(), deadline()), ReleaseOutcome::notOwner) << step;
        std::erase_if(held, [&](const Claimant& each) { return each.token == who.token; });
        used -= who.share ? who.share->weight : limit;
      }
    }
    ASSERT_EQ(holder(key).has_value(), used > 0) << step;
  }
}

TEST_P(DriverContract, APostedReleaseGivesBackTheShareOfItsOwnerOnly) {
  auto* const postable = capability<Postable>(*driver);
  if (!GetParam().permits || postable == nullptr) GTEST_SKIP() << noPermits << ", or it is not Postable";
  const Claimant first = sharer(1, 2);
  const Claimant owner = sharer(1, 2);
  ASSERT_TRUE(grant(first));
  ASSERT_EQ(release(first), ReleaseOutcome::released) << "from now on, releases may be posted";
  ASSERT_TRUE(grant(first));
  ASSERT_TRUE(grant(owner));
  EXPECT_TRUE(postable->postRelease(sharer(1, 2).claim(), nullptr));
  EXPECT_TRUE(isBusy(sharer(1, 2)));
  EXPECT_TRUE(postable->postRelease(owner.claim(), nullptr));
  EXPECT_TRUE(grant(sharer(1, 2)));
  EXPECT_EQ(renew(first), RenewOutcome::renewed);
  postable->awaitPosted(deadline());
}

TEST_P(DriverContract, ThreadsNeverHaveMorePermitsThanThereAre) {
  if (!GetParam().permits) GTEST_SKIP() << noPermits;
  constexpr std::uint32_t limit = 3;
  std::atomic<std::uint32_t> used = 0;
  std::atomic<int> tooMany = 0;
  std::atomic<int> grants = 0;
  std::vector<std::jthread> threads;
  for (std::uint32_t number = 0; number < 6; ++number) {
    threads.emplace_back([&, number] {
      LockDriver& client = number % 2 == 0 ? *driver : *otherClient;
      for (int round = 0; round < 60; ++round) {
        Claimant who = sharer(1 + number % 3, limit);
        if (number == 5) who.share.reset();
        const std::uint32_t weight = who.share ? who.share->weight : limit;
        if (!std::holds_alternative<Granted>(ask(client, who))) continue;
        if (used.fetch_add(weight) + weight > limit) ++tooMany;
        ++grants;
        used -= weight;
        if (client.release(who.claim(), deadline()) != ReleaseOutcome::released) ++tooMany;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(tooMany, 0);
  EXPECT_GT(grants, 0);
  EXPECT_FALSE(holder(key));
  EXPECT_TRUE(queued(0)) << "who found no room has left a claim";
}

}  // namespace lockkeeper::testing
