#pragma once

#include <chrono>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace lockkeeper::testing {

/// For what a machine with other work may spoil: repeats a round until it has gone well, three times at most.
/// The test fails when none has.
///
///     for (BestOfThree rounds("nobody looks"); rounds.next();) {
///       …
///       rounds.end(now() - released < 900ms);
///     }
class BestOfThree {
 public:
  /// `what` is expected of a round, for the message.
  explicit BestOfThree(std::string what) : what_(std::move(what)) {}

  /// Begins a round. False when there is none left to do.
  bool next() {
    constexpr int most = 3;
    if (isDone_) return false;
    if (begun_ == most) {
      ADD_FAILURE() << "in none of " << most << " rounds: " << what_;
      return false;
    }
    ++begun_;
    began_ = std::chrono::steady_clock::now();
    return true;
  }

  /// Ends a round. One without it has not gone well.
  void end(bool wentWell) { isDone_ = wentWell; }

  /// Whether the round has taken so little time that no waiter has lost its place in a queue for being
  /// silent: then it must go well.
  bool isQuick() const { return std::chrono::steady_clock::now() - began_ < std::chrono::seconds{1}; }

 private:
  const std::string what_;
  std::chrono::steady_clock::time_point began_;
  int begun_ = 0;
  bool isDone_ = false;
};

}  // namespace lockkeeper::testing
