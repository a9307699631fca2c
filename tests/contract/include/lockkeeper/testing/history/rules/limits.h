#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/testing/history/report.h"
#include "lockkeeper/testing/history/rules/calls_of_key.h"

namespace lockkeeper::testing::history {

/// Sums of many products of 64 bits.
__extension__ using Wide = __int128;

/// Numbers in a row: adds to all up to a place, and finds the greatest up to another one.
class PrefixMaximum {
 public:
  /// The greatest number, and its place.
  struct Found {
    Wide value;
    std::size_t place;
  };

  /// Begins with these.
  explicit PrefixMaximum(const std::vector<Wide>& values)
      : leaves_(std::bit_ceil(values.size())), greatest_(2 * leaves_), added_(2 * leaves_) {
    for (std::size_t i = 0; i < leaves_; ++i) {
      const Wide none = -(Wide{1} << 100);
      greatest_[leaves_ + i] = {i < values.size() ? values[i] : none, i};
    }
    for (std::size_t i = leaves_ - 1; i > 0; --i) update(i);
  }

  /// Adds to all from the first up to `last`.
  void addUpTo(std::size_t last, Wide amount) { add(1, 0, leaves_, last, amount); }
  /// Of those from `first` to `last`, which is not before it.
  Found greatest(std::size_t first, std::size_t last) const { return find(1, 0, leaves_, first, last); }

 private:
  void update(std::size_t node) {
    const Found& left = greatest_[2 * node];
    const Found& right = greatest_[2 * node + 1];
    greatest_[node] = left.value >= right.value ? left : right;
    greatest_[node].value += added_[node];
  }

  void add(std::size_t node, std::size_t begin, std::size_t end, std::size_t last, Wide amount) {
    if (begin > last) return;
    if (end - 1 <= last) {
      greatest_[node].value += amount;
      added_[node] += amount;
      return;
    }
    const std::size_t middle = (begin + end) / 2;
    add(2 * node, begin, middle, last, amount);
    add(2 * node + 1, middle, end, last, amount);
    update(node);
  }

  Found find(std::size_t node, std::size_t begin, std::size_t end, std::size_t first,
             std::size_t last) const {
    if (begin >= first && end - 1 <= last) return greatest_[node];
    const std::size_t middle = (begin + end) / 2;
    Found found;
    if (last < middle) {
      found = find(2 * node, begin, middle, first, last);
    } else if (first >= middle) {
      found = find(2 * node + 1, middle, end, first, last);
    } else {
      const Found left = find(2 * node, begin, middle, first, last);
      const Found right = find(2 * node + 1, middle, end, first, last);
      found = left.value >= right.value ? left : right;
    }
    found.value += added_[node];
    return found;
  }

  std::size_t leaves_;
  std::vector<Found> greatest_;  // below each node, with what was added to it and below
  std::vector<Wide> added_;      // to all below the node
};

/// What was granted, and between which times of the store, in µs.
struct Taken {
  const Call* call;
  std::int64_t from;
  std::int64_t to;
};

/// Without the store's own time, a call was decided between its invoke and its answer. A store counts in
/// whole µs.
inline std::vector<Taken> takenOf(const Calls& calls) {
  const auto floor = [](std::int64_t ns) { return ns >= 0 ? ns / 1000 : (ns - 999) / 1000; };
  std::vector<Taken> all;
  for (const Call* const each : calls) {
    if (each->at.has_value() != calls.front()->at.has_value())
      throw std::invalid_argument("line " + std::to_string(each->answerLine) + ": at is " +
                                  (each->at ? "there" : "missing") + ": line " +
                                  std::to_string(calls.front()->answerLine) +
                                  " is otherwise, and all of a limit's key must be alike");
    all.push_back(
        {each, each->at.value_or(floor(each->invoked)), each->at.value_or(floor(each->answered + 999))});
  }
  return all;
}

/// In no length of time was more taken than the policy allows for it: of what was certainly taken within it.
inline void checkLimits(const History& history, Report& report) {
  const auto isTaken = [](const Call& each) {
    return each.operation == Operation::take && each.answer == Phase::ok && each.units > 0;
  };
  forEachKey(history, isTaken, [&](const Calls& calls) {
    const RateLaw& law = calls.front()->policy->law();
    const bool isBucket = lockkeeper::isBucket(law.kind);
    // Units are counted in `period`s, of which a bucket gains `parts` each µs.
    const Wide unit = isBucket ? law.period : 1;
    const Wide gained = isBucket ? law.parts : 0;
    std::vector<Taken> taken = takenOf(calls);
    std::vector<std::int64_t> starts;
    for (const Taken& each : taken) starts.push_back(each.from);
    std::sort(starts.begin(), starts.end());
    std::vector<Wide> began;
    for (const std::int64_t each : starts) began.push_back(gained * each);
    PrefixMaximum used(began);
    std::stable_sort(taken.begin(), taken.end(), [](const Taken& a, const Taken& b) { return a.to < b.to; });
    for (const Taken& each : taken) {
      const auto placeOf = [&](std::int64_t time) {
        return static_cast<std::size_t>(std::lower_bound(starts.begin(), starts.end(), time) -
                                        starts.begin());
      };
      const std::size_t last = placeOf(each.from);
      used.addUpTo(last, unit * each.call->units);
      const std::size_t first = isBucket ? 0 : placeOf(each.to - law.period + 1);
      if (first > last) continue;  // one call that took longer than the window
      const auto [value, place] = used.greatest(first, last);
      if (value - gained * each.to <= unit * law.limit) continue;
      const std::int64_t length = each.to - starts[place];
      report.add(Rule::limit, each.call->answerLine, 0,
                 lockkeeper::quoted(history.key(each.call->key)) + ": " +
                     std::to_string(static_cast<std::int64_t>((value - gained * starts[place]) / unit)) +
                     " were taken within " + std::to_string(length) + " µs, where " +
                     std::to_string(static_cast<std::int64_t>(law.limit + gained * length / unit)) +
                     " are allowed");
    }
  });
}

}  // namespace lockkeeper::testing::history
