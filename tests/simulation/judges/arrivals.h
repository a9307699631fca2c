#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulation/judges/judge.h"
#include "simulation/machine/scheduler.h"

namespace lockkeeper::simulation {

/// Who has counted at which latch, or has come to which round of a barrier: what they may say of it.
class Arrivals {
 public:
  Arrivals(Scheduler& scheduler, Judge& judge) : scheduler_(scheduler), judge_(judge) {}

  /// How long a latch remembers who has counted.
  static constexpr Time kept = 30 * second;

  /// `who` begins to count at `latch`. Returns the number of the count.
  std::size_t begins(const std::string& latch, const std::string& who) {
    auto& its = latches_[latch][who];
    its.push_back({.began = scheduler_.now()});
    return its.size() - 1;
  }
  /// The store has confirmed it.
  void counted(const std::string& latch, const std::string& who, std::size_t number) {
    latches_[latch][who][number].done = scheduler_.now();
  }

  /// A wait, or a look at who is missing, that began then, found that all, or one, have counted.
  void isSeen(const std::string& latch, const std::string& who, Time began) {
    const auto mayBeThere = [&](const Count& count) {
      return (count.done == never ? count.began + longestDelay : count.done) + kept + second >= began;
    };
    const auto& its = latches_[latch][who];
    if (std::none_of(its.begin(), its.end(), mayBeThere))
      judge_.fail("the latch " + latch, "counts " + who + ", who has not come");
  }
  void opens(const std::string& latch, const std::vector<std::string>& participants, Time began) {
    ++openings_;
    for (const std::string& each : participants) isSeen(latch, each, began);
  }

  /// A look that began then has not found `who`.
  void isMissing(const std::string& latch, const std::string& who, Time began) {
    if (isCertain(latch, who, began)) judge_.fail("the latch " + latch, "misses " + who);
  }
  /// A wait from `began` to `until` has ended, and it stayed shut.
  void staysShut(const std::string& latch, const std::vector<std::string>& participants, Time began,
                 Time until) {
    if (!judge_.calm) return;  // the store may have told of it too late
    const auto isThere = [&](const std::string& each) {
      return isCertain(latch, each, std::max(began, until - atOnce));
    };
    if (std::all_of(participants.begin(), participants.end(), isThere))
      judge_.fail("the latch " + latch, "stays shut, although all have come");
  }

  /// When the last one has certainly counted there.
  Time lastCount(const std::string& latch) const {
    Time last = 0;
    const auto found = latches_.find(latch);
    if (found == latches_.end()) return last;
    for (const auto& [who, counts] : found->second) {
      for (const Count& each : counts) last = each.done == never ? last : std::max(last, each.done);
    }
    return last;
  }

  std::uint64_t openings() const noexcept { return openings_; }

 private:
  struct Count {
    Time began;
    Time done = never;
  };
  // What a request may be on its way after its caller has given up.
  static constexpr Time longestDelay = 20 * second;
  // In which who waits hears of it, where nothing goes wrong.
  static constexpr Time atOnce = 300 * millisecond;

  // Whether it was counted by `last`, and is still remembered.
  bool isCertain(const std::string& latch, const std::string& who, Time last) {
    const auto& its = latches_[latch][who];
    return std::any_of(its.begin(), its.end(), [&](const Count& each) {
      return each.done <= last && each.began + kept > scheduler_.now() + second;
    });
  }

  Scheduler& scheduler_;
  Judge& judge_;
  std::map<std::string, std::map<std::string, std::vector<Count>>> latches_;
  std::uint64_t openings_ = 0;
};

}  // namespace lockkeeper::simulation
