#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/driver/batches.h"
#include "lockkeeper/testing/contract/driver_fixture.h"

namespace lockkeeper::testing {

/// Counts what became of releases that were posted.
class PostOutcomes final : public PostListener {
 public:
  void answered(ReleaseOutcome outcome) noexcept override {
    ++(outcome == ReleaseOutcome::released ? released : refused);
  }
  void failed(ErrorCode /*code*/, std::string_view /*text*/) noexcept override { ++failures; }

  std::atomic<int> released = 0;
  std::atomic<int> refused = 0;
  std::atomic<int> failures = 0;
};

TEST_P(DriverContract, APostedReleaseIsThereBeforeTheNextRequestForTheKey) {
  auto* const postable = capability<Postable>(*driver);
  if (postable == nullptr) GTEST_SKIP() << notPostable;
  constexpr int threadCount = 16;
  constexpr int rounds = 60;
  const auto outcomes = std::make_shared<PostOutcomes>();
  std::atomic<int> granted = 0;
  std::atomic<int> posted = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < threadCount; ++thread) {
      threads.emplace_back([&, own = key + "/" + std::to_string(thread)] {
        for (int round = 0; round < rounds; ++round) {
          const Claimant who{own};
          granted += grant(who).has_value();
          // What it does not take, such as the first one, is released as usual.
          if (postable->postRelease(who.claim(), outcomes)) {
            ++posted;
          } else {
            EXPECT_EQ(release(who), ReleaseOutcome::released);
          }
        }
      });
    }
  }
  EXPECT_EQ(granted, threadCount * rounds) << "each finds free what it has released before";
  EXPECT_GT(posted, 0);
  postable->awaitPosted(deadline());
  EXPECT_EQ(outcomes->released, posted);
  EXPECT_EQ(outcomes->refused + outcomes->failures, 0);
}

TEST_P(DriverContract, APostedReleaseFreesTheKeyOfItsOwnerOnly) {
  auto* const postable = capability<Postable>(*driver);
  if (postable == nullptr) GTEST_SKIP() << notPostable;
  const Claimant owner{key};
  const Claimant former{key};
  ASSERT_TRUE(grant(former));
  ASSERT_EQ(release(former), ReleaseOutcome::released);
  ASSERT_TRUE(grant(owner));
  const auto outcomes = std::make_shared<PostOutcomes>();
  EXPECT_TRUE(postable->postRelease(former.claim(), outcomes));
  EXPECT_TRUE(postable->postRelease(Claimant{"{" + key + "}/other"}.claim(), outcomes));
  EXPECT_EQ(renew(owner), RenewOutcome::renewed);
  postable->awaitPosted(deadline());
  EXPECT_EQ(outcomes->refused, 2);
  EXPECT_TRUE(postable->postRelease(owner.claim(), nullptr)) << "nobody need hear of it";
  EXPECT_TRUE(grant({key}));
  EXPECT_EQ(outcomes->released + outcomes->failures, 0);
}

}  // namespace lockkeeper::testing
