#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "lockkeeper/error.h"
#include "lockkeeper/testing/history/report.h"
#include "lockkeeper/testing/history/rules/calls_of_key.h"

namespace lockkeeper::testing::history {

/// Each call is answered within its bound, in which its process may be stopped any time, or before the end
/// where it has none; unless its process has died, or it has no bound and its process was stopped.
inline void checkAnswers(const History& history, Report& report) {
  for (const Call& each : history.calls()) {
    if (!each.answer && history.hasDied(each)) continue;
    const std::int64_t end = std::min(each.answered, history.latest());
    const std::int64_t paused = history.pausedFor(each, end);
    const std::int64_t waited = end - each.invoked - paused;
    const bool isOverdue = each.within == never ? !each.answer && paused == 0 : waited > each.within;
    if (!isOverdue) continue;
    report.add(Rule::noAnswer, each.answer ? each.answerLine : each.line, each.answer ? each.line : 0,
               lockkeeper::quoted(history.process(each.process)) +
                   (each.answer ? " had its answer after " : " had no answer in ") + std::to_string(waited) +
                   " ns" + (each.within == never ? "" : ", instead of " + std::to_string(each.within)));
  }
}

/// What the store still holds in the end is what somebody believes to have.
inline void checkLeaks(const History& history, Report& report) {
  std::unordered_map<std::uint32_t, const Leftover*> unclaimed;
  for (const Leftover& each : history.leftovers()) unclaimed.emplace(each.key, &each);
  for (const Call& each : history.calls()) {
    const auto found = each.isGrant() ? unclaimed.find(each.key) : unclaimed.end();
    if (found == unclaimed.end()) continue;
    const std::int64_t time = found->second->time;
    if (each.answered <= time && time < each.believedUntil()) unclaimed.erase(found);
  }
  for (const Leftover& each : history.leftovers()) {
    if (!unclaimed.contains(each.key)) continue;
    report.add(Rule::leak, each.line, 0,
               "the store still has " + lockkeeper::quoted(history.key(each.key)) + " at " +
                   std::to_string(each.time) + ", and nobody believes to have it");
  }
}

}  // namespace lockkeeper::testing::history
