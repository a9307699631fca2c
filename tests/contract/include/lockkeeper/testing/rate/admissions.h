#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lockkeeper/limit/rate_law.h"

#include <gtest/gtest.h>

namespace lockkeeper::testing {

struct Admission {
  std::int64_t time;  // the store's
  std::int64_t cost;
};

/// Whether no stretch of admissions costs more than rate and burst allow for its length. For every i <= j at
/// once: the costs before i, less what has flowed until then, are at their least somewhere. In 1/parts µs.
inline bool keepsEveryWindow(const RateLaw& law, const std::vector<Admission>& admissions) {
  __extension__ using Wide = __int128;
  if (admissions.empty()) return true;
  Wide sum = 0, least = -Wide{admissions.front().time} * law.parts;
  for (const Admission& each : admissions) {
    const Wide flowed = Wide{each.time} * law.parts;
    least = std::min(least, sum - flowed);
    sum += Wide{each.cost} * law.period;
    if (sum - flowed - least > Wide{law.limit} * law.period) return false;
  }
  return true;
}

/// For windows: the most in any of them. A calendar's are those that start at a multiple of the period.
inline std::int64_t fullestWindow(const RateLaw& law, const std::vector<Admission>& admissions) {
  std::int64_t fullest = 0, inside = 0;
  std::size_t oldest = 0;
  for (const Admission& each : admissions) {
    const std::int64_t start =
        law.kind == RateKind::fixedWindow ? each.time - each.time % law.period : each.time - law.period + 1;
    inside += each.cost;
    for (; admissions[oldest].time < start; ++oldest) inside -= admissions[oldest].cost;
    fullest = std::max(fullest, inside);
  }
  return fullest;
}

/// One admission: the bucket was used up to `before`, and is to `after` (the store's µs).
struct Link {
  std::int64_t time;
  std::int64_t before;
  std::int64_t after;
};

/// Each admission starts where the one before it ended, or at its own time if that was later. `interval` is
/// what one costs. If two had started from one state, one of them would not fit in.
inline ::testing::AssertionResult formOneChain(std::vector<Link> links, std::int64_t interval) {
  std::sort(links.begin(), links.end(), [](const Link& a, const Link& b) { return a.after < b.after; });
  for (std::size_t index = 0; index < links.size(); ++index) {
    const Link& link = links[index];
    const std::int64_t from = index == 0 ? link.time : std::max(links[index - 1].after, link.time);
    if (link.before == from && link.after == from + interval) continue;
    return ::testing::AssertionFailure() << "admission " << index << " of " << links.size() << " goes from "
                                         << link.before << " to " << link.after << ", not from " << from;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace lockkeeper::testing
