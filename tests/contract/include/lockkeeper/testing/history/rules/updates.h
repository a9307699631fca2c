#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "lockkeeper/error.h"
#include "lockkeeper/testing/history/report.h"
#include "lockkeeper/testing/history/rules/calls_of_key.h"

namespace lockkeeper::testing::history {

/// The reads and writes of one value.
class GuardedValue {
 public:
  /// Violations go to `report`.
  GuardedValue(const History& history, Report& report) : history_(history), report_(report) {}

  /// All reads and writes of the value.
  void check(const Calls& calls) {
    for (const Call* const each : calls) {
      if (each->operation == Operation::write) noteWrite(*each);
    }
    checkReads(calls);
    checkWrites(calls);
  }

 private:
  void noteWrite(const Call& write) {
    const auto [other, isNew] = writes_.try_emplace(*write.value, &write);
    if (!isNew)
      throw std::invalid_argument(
          "line " + std::to_string(write.line) + ": value is " + std::to_string(*write.value) +
          ", which line " + std::to_string(other->second->line) + " has written to " +
          lockkeeper::quoted(history_.key(write.key)) + ", too: each write needs another one");
    if (write.answer == Phase::ok) applied_.insert(&write);
  }

  void checkReads(const Calls& calls) {
    Calls done;
    for (const Call* const each : calls) {
      if (each->operation == Operation::write && each->answer == Phase::ok) done.push_back(each);
    }
    done = byAnswer(std::move(done));
    auto next = done.begin();
    const Call* latest = nullptr;  // of the writes that were done before the read, the last one that began
    for (const Call* const read : calls) {
      if (read->operation != Operation::read || read->answer != Phase::ok) continue;
      for (; next != done.end() && (*next)->answered < read->invoked; ++next) {
        if (!latest || (*next)->invoked > latest->invoked) latest = *next;
      }
      const auto source = writes_.find(*read->value);
      const Call* const write = source == writes_.end() ? nullptr : source->second;
      if (write && (write->answer == Phase::fail || write->invoked > read->answered)) {
        tell(*read, *write, " read " + text(*read) + ", which was not written by then");
        continue;
      }
      if (!write && *read->value != initial_.value_or(*read->value)) {
        report_.add(Rule::lostUpdate, read->answerLine, 0,
                    name(*read) + " read " + text(*read) + ", which nobody has written");
        continue;
      }
      if (write) {
        applied_.insert(write);
      } else {
        initial_ = read->value;
      }
      if (!latest || latest == write) continue;
      if (!write || (write->answer == Phase::ok && latest->invoked > write->answered))
        tell(*read, *latest, " read " + text(*read) + ", which " + text(*latest) + " had replaced");
    }
  }

  void checkWrites(Calls calls) {
    std::stable_sort(calls.begin(), calls.end(),
                     [](const Call* a, const Call* b) { return a->grant->line < b->grant->line; });
    std::unordered_map<std::int64_t, const Call*> replacedBy;
    const Call* grant = nullptr;
    const Call* seen = nullptr;  // whose value the holder of the grant knows to be there
    for (const Call* const each : calls) {
      if (each->grant != grant) seen = nullptr;
      grant = each->grant;
      const bool isWrite = each->operation == Operation::write;
      if (isWrite && seen != nullptr && applied_.contains(each)) {
        const auto [first, isFirst] = replacedBy.try_emplace(*seen->value, each);
        if (!isFirst)
          tell(*each, *first->second,
               " wrote " + text(*each) + " in the place of " + text(*seen) + ", which " +
                   text(*first->second) + " has replaced, too");
      }
      if (each->answer == Phase::ok) {
        seen = each;
      } else if (isWrite && each->answer != Phase::fail) {
        seen = nullptr;
      }
    }
  }

  std::string name(const Call& call) const {
    return lockkeeper::quoted(history_.key(call.key)) + ": " +
           lockkeeper::quoted(history_.process(call.process));
  }
  static std::string text(const Call& call) { return std::to_string(*call.value); }
  void tell(const Call& call, const Call& other, const std::string& what) {
    report_.add(Rule::lostUpdate, call.answerLine != 0 ? call.answerLine : call.line, other.line,
                name(call) + what);
  }

  const History& history_;
  Report& report_;
  std::unordered_map<std::int64_t, const Call*> writes_;
  std::unordered_set<const Call*> applied_;  // writes that were confirmed or read
  std::optional<std::int64_t> initial_;
};

/// No two writes replace the same value, and a read sees the last write before it. Each write has a value of
/// its own: throws std::invalid_argument where it has not.
inline void checkUpdates(const History& history, Report& report) {
  const auto isAccess = [](const Call& each) {
    return each.operation == Operation::read || each.operation == Operation::write;
  };
  forEachKey(history, isAccess, [&](const Calls& calls) { GuardedValue(history, report).check(calls); });
}

}  // namespace lockkeeper::testing::history
