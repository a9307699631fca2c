#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lockkeeper/limit/rate_law.h"
#include "simulation/judges/judge.h"

namespace lockkeeper::simulation {

/// What the limits of a history have admitted. When the store decided is not known, but only between what its
/// clock said at the beginning of a call and at its end. So too much was admitted only if it was so at
/// whatever time of these the store decided, and a refusal is wrong only if it is so at each.
class Admissions {
 public:
  Admissions(Judge& judge, const std::vector<RateLaw>& laws) : judge_(judge) {
    for (const RateLaw& each : laws) limits_.push_back({each, {}});
  }

  enum class Answer { admitted, refused, unknown };
  struct Call {
    std::int64_t began;  // in microseconds of the store's clock
    std::int64_t ended;
    std::int64_t cost;
    Answer answer;
  };
  void add(std::size_t limit, const Call& call) {
    limits_[limit].calls.push_back(call);
    count_ += call.answer == Answer::admitted ? 1 : 0;
  }
  std::uint64_t count() const noexcept { return count_; }

  /// When all calls have ended.
  void check();

 private:
  struct Limit {
    RateLaw law;
    std::vector<Call> calls;
  };
  std::int64_t surelyWithin(const Limit& limit, std::int64_t first, std::int64_t last) const;
  void checkAdmitted(const Limit& limit);
  /// The most that may count, without `refused` itself, when that was decided.
  std::int64_t mostUsed(const Limit& limit, const Call& refused) const;
  std::int64_t mostInBucket(const Limit& limit, const Call& refused, std::int64_t first) const;

  Judge& judge_;
  std::vector<Limit> limits_;
  std::uint64_t count_ = 0;
};

}  // namespace lockkeeper::simulation
