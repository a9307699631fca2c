#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "lockkeeper/error.h"
#include "lockkeeper/testing/history/report.h"
#include "lockkeeper/testing/history/rules/calls_of_key.h"

namespace lockkeeper::testing::history {

/// At each grant, those who believe to have the key then, and whoever gets it, have no more than there is.
inline void checkHolders(const History& history, Report& report) {
  const auto isBelieved = [](const Call& each) {
    return each.isGrant() && each.believedUntil() > each.answered;
  };
  forEachKey(history, isBelieved, [&](const Calls& grants) {
    std::set<std::pair<std::int64_t, const Call*>> holders;  // by when they stop to believe
    std::int64_t taken = 0;
    for (const Call* const grant : byAnswer(grants)) {
      while (!holders.empty() && holders.begin()->first <= grant->answered) {
        taken -= holders.begin()->second->weight;
        holders.erase(holders.begin());
      }
      if (taken > 0 && taken + grant->weight > grant->limit) {
        const Call& other = *holders.rbegin()->second;
        report.add(Rule::twoHolders, grant->answerLine, other.answerLine,
                   lockkeeper::quoted(history.key(grant->key)) + " was granted to " +
                       lockkeeper::quoted(history.process(grant->process)) + " at " +
                       std::to_string(grant->answered) + ", and " +
                       lockkeeper::quoted(history.process(other.process)) + " believed to have it until " +
                       std::to_string(other.believedUntil()));
      }
      holders.emplace(grant->believedUntil(), grant);
      taken += grant->weight;
    }
  });
}

}  // namespace lockkeeper::testing::history
