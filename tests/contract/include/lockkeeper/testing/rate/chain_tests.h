#pragma once

#include <algorithm>
#include <thread>
#include <vector>

#include "lockkeeper/testing/rate/admissions.h"
#include "lockkeeper/testing/rate/rate_fixture.h"

namespace lockkeeper::testing {

TEST_P(RateContract, AdmissionsOfManyClientsFormOneChain) {
  constexpr int clients = 4;
  constexpr std::int64_t interval = 200;
  const int each = std::min(GetParam().arrivals / 10, 5000);
  const RatePolicy policy = bucket("5000/s", 20);
  std::vector<std::vector<Link>> found(clients);
  {
    std::vector<std::jthread> threads;
    for (std::vector<Link>& links : found) {
      threads.emplace_back([&] {
        const auto client = openClient();
        for (int count = 0; count < each; ++count) {
          pass(microseconds{20});
          const RateOutcome outcome = take(*client, key, policy);
          if (outcome.granted == 0) continue;
          links.push_back({outcome.storeTime, outcome.slot.micros, resetTime(outcome)});
        }
      });
    }
  }
  std::vector<Link> all;
  for (const auto& links : found) all.insert(all.end(), links.begin(), links.end());
  EXPECT_TRUE(formOneChain(all, interval));
  EXPECT_GT(all.size(), 20U);
  std::vector<Admission> admissions;
  for (const Link& link : all) admissions.push_back({link.time, 1});
  std::sort(admissions.begin(), admissions.end(), [](auto& a, auto& b) { return a.time < b.time; });
  EXPECT_TRUE(keepsEveryWindow(policy.law(), admissions));
}

}  // namespace lockkeeper::testing
