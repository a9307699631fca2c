#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "lockkeeper/error.h"
#include "lockkeeper/testing/history/report.h"
#include "lockkeeper/testing/history/rules/calls_of_key.h"

namespace lockkeeper::testing::history {

/// A writer's fence is above those of all grants that were there when it asked, a reader's is not below those
/// of the writers among them, and no two writers have the same.
inline void checkFences(const History& history, Report& report) {
  if (!history.promises().fences) return;
  const auto told = [&](const Call& grant, const Call* other, const std::string& what) {
    report.add(Rule::fence, grant.answerLine, other ? other->answerLine : 0,
               lockkeeper::quoted(history.key(grant.key)) + " was granted to " +
                   lockkeeper::quoted(history.process(grant.process)) + what);
  };
  const auto isGrant = [](const Call& each) { return each.isGrant(); };
  forEachKey(history, isGrant, [&](const Calls& grants) {
    const Calls answered = byAnswer(grants);
    auto next = answered.begin();
    const Call* highest = nullptr;
    const Call* highestWriter = nullptr;
    Calls writers;
    for (const Call* const grant : grants) {
      for (; next != answered.end() && (*next)->answered < grant->invoked; ++next) {
        if (!(*next)->fence) continue;
        if (!highest || *(*next)->fence > *highest->fence) highest = *next;
        if ((*next)->isWriter() && (!highestWriter || *(*next)->fence > *highestWriter->fence))
          highestWriter = *next;
      }
      if (!grant->fence) {
        if (grant->isWriter()) told(*grant, nullptr, " without a fence");
        continue;
      }
      if (grant->isWriter()) writers.push_back(grant);
      const Call* const before = grant->isWriter() ? highest : highestWriter;
      if (before &&
          (*grant->fence < *before->fence || (grant->isWriter() && *grant->fence == *before->fence)))
        told(*grant, before,
             " with fence " + std::to_string(*grant->fence) + ", after fence " +
                 std::to_string(*before->fence));
    }
    std::sort(writers.begin(), writers.end(), [](const Call* a, const Call* b) {
      return a->fence != b->fence ? a->fence < b->fence : answeredFirst(a, b);
    });
    for (std::size_t i = 1; i < writers.size(); ++i) {
      const Call& first = *writers[i - 1];
      const Call& second = *writers[i];
      if (first.fence == second.fence && first.answered >= second.invoked)  // otherwise it was found above
        told(second, &first, " with fence " + std::to_string(*second.fence) + ", which another grant has");
    }
  });
}

}  // namespace lockkeeper::testing::history
