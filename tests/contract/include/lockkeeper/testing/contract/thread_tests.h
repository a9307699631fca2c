#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/testing/contract/driver_fixture.h"

namespace lockkeeper::testing {

TEST_P(DriverContract, NeverHasTwoHoldersOfAKeyHoweverManyThreadsAsk) {
  constexpr int threadCount = 8;
  constexpr int grantsWanted = 200;
  const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes{1};
  std::atomic<int> inside{0};
  std::atomic<int> grants{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> failedReleases{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < threadCount; ++i) {
      threads.emplace_back([&, client = i % 2 == 0 ? driver : otherClient] {
        while (grants < grantsWanted && std::chrono::steady_clock::now() < patience) {
          const Claimant who{key};
          if (!std::holds_alternative<Granted>(ask(*client, who))) {
            std::this_thread::yield();  // to the holder, which may have no processor
            continue;
          }
          if (inside.fetch_add(1) != 0) ++overlaps;
          std::this_thread::yield();
          ++grants;
          inside.fetch_sub(1);
          if (client->release(who.claim(), deadline()) != ReleaseOutcome::released) ++failedReleases;
        }
      });
    }
  }
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(failedReleases, 0);
  EXPECT_GE(grants, grantsWanted);
  EXPECT_FALSE(holder(key));
}

TEST_P(DriverContract, ThreadsWithKeysOfTheirOwnDoNotDisturbEachOther) {
  constexpr int threadCount = 8;
  constexpr int rounds = 100;
  std::atomic<int> failures{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < threadCount; ++i) {
      threads.emplace_back([&, mine = key + "/" + std::to_string(i)] {
        for (int round = 0; round < rounds; ++round) {
          const Claimant who{mine, mine};
          const bool granted = std::holds_alternative<Granted>(ask(who));
          const auto held = holder(mine);
          const bool seen = held && held->owner == mine;
          const bool renewed = renew(who) == RenewOutcome::renewed;
          if (!granted || !seen || !renewed || release(who) != ReleaseOutcome::released) ++failures;
        }
      });
    }
  }
  EXPECT_EQ(failures, 0);
}

}  // namespace lockkeeper::testing
