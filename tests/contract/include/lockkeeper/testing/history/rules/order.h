#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/testing/history/report.h"
#include "lockkeeper/testing/history/rules/calls_of_key.h"

namespace lockkeeper::testing::history {

/// The earliest answered of the grants that were invoked after some time. Grants are put in one by one.
class EarliestAfter {
 public:
  /// `grants`: all that will be put in, sorted by when they were invoked.
  explicit EarliestAfter(const Calls& grants) : grants_(grants), earliest_(grants.size() + 1) {}

  /// Adds one of them.
  void put(const Call* grant) {
    for (std::size_t i = placesFrom(grant->invoked - 1); i < earliest_.size(); i += i & (~i + 1)) {
      if (!earliest_[i] || grant->answered < earliest_[i]->answered) earliest_[i] = grant;
    }
  }

  /// Null where there is none.
  const Call* after(std::int64_t time) const {
    const Call* found = nullptr;
    for (std::size_t i = placesFrom(time); i > 0; i -= i & (~i + 1)) {
      if (earliest_[i] && (!found || earliest_[i]->answered < found->answered)) found = earliest_[i];
    }
    return found;
  }

 private:
  // How many grants were invoked after `time`: a Fenwick tree from the last one to the first.
  std::size_t placesFrom(std::int64_t time) const {
    const auto first =
        std::upper_bound(grants_.begin(), grants_.end(), time,
                         [](std::int64_t left, const Call* right) { return left < right->invoked; });
    return static_cast<std::size_t>(grants_.end() - first);
  }

  const Calls& grants_;
  std::vector<const Call*> earliest_;
};

/// Nobody who asked after a waiter's place was confirmed was granted the key while the waiter was known to
/// wait. That is until its last confirmation but one, because an answer is older than the moment at which it
/// comes; and until its own grant, against those who cannot have the key beside it. An upgrade goes ahead of
/// all by design. A waiter that was stopped may have missed its turn.
inline void checkOrder(const History& history, Report& report) {
  if (!history.promises().fifo) return;
  struct Question {
    const Call* waiter;
    std::int64_t lighter;  // whom it concerns: who asked for more than this
    std::int64_t until;    // known to wait
  };
  const auto isGrantOrWaits = [](const Call& each) {
    return each.operation == Operation::lock && (each.isGrant() || each.firstQueued != never);
  };
  forEachKey(history, isGrantOrWaits, [&](const Calls& calls) {
    std::vector<Question> questions;
    Calls grants;
    for (const Call* const each : calls) {
      if (each->firstQueued != never) {
        questions.push_back({each, 0, each->waitedUntil});
        if (each->isGrant() && each->believedUntil() > each->answered)
          questions.push_back({each, each->limit - each->weight, each->answered});
      }
      if (each->isGrant() && each->kind != Kind::upgrade) grants.push_back(each);
    }
    if (questions.empty()) return;
    EarliestAfter earliest(grants);
    Calls byWeight = grants;
    std::stable_sort(byWeight.begin(), byWeight.end(),
                     [](const Call* a, const Call* b) { return a->weight > b->weight; });
    std::stable_sort(questions.begin(), questions.end(),
                     [](const Question& a, const Question& b) { return a.lighter > b.lighter; });
    auto next = byWeight.begin();
    std::set<const Call*> reported;
    for (const Question& question : questions) {
      for (; next != byWeight.end() && (*next)->weight > question.lighter; ++next) earliest.put(*next);
      const Call& waiter = *question.waiter;
      const Call* const ahead = earliest.after(waiter.firstQueued);
      if (!ahead || ahead->answered >= question.until) continue;
      if (history.pausedFor(waiter, ahead->answered) > 0 || !reported.insert(&waiter).second) continue;
      report.add(Rule::order, ahead->answerLine, waiter.line,
                 lockkeeper::quoted(history.key(waiter.key)) + " was granted to " +
                     lockkeeper::quoted(history.process(ahead->process)) + ", who asked at " +
                     std::to_string(ahead->invoked) + ", before " +
                     lockkeeper::quoted(history.process(waiter.process)) + ", who was in the queue at " +
                     std::to_string(waiter.firstQueued));
    }
  });
}

}  // namespace lockkeeper::testing::history
