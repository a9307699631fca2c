#include "simulation/judges/admissions.h"

#include <algorithm>
#include <limits>

namespace lockkeeper::simulation {
namespace {

// What a request may be on its way after its caller has given up.
constexpr std::int64_t longestDelay = 20'000'000;

std::int64_t latestOf(const Admissions::Call& call) {
  return call.answer == Admissions::Answer::unknown ? call.ended + longestDelay : call.ended;
}

// From when on a client may have known that it will be refused: its clock and the store's run apart.
std::int64_t earliestOf(const RateLaw& law, const Admissions::Call& call) {
  return call.began - law.limit * law.period / law.parts / 100 - law.period / 100 - 5000;
}

}  // namespace

void Admissions::check() {
  for (const Limit& limit : limits_) {
    checkAdmitted(limit);
    for (const Call& each : limit.calls) {
      if (each.answer != Answer::refused) continue;
      const std::int64_t most = mostUsed(limit, each);
      if (most + each.cost > limit.law.limit) continue;
      judge_.fail(toString(limit.law.kind), "has refused " + std::to_string(each.cost) + " when at most " +
                                                std::to_string(most) + " of " +
                                                std::to_string(limit.law.limit) + " counted");
    }
  }
}

std::int64_t Admissions::surelyWithin(const Limit& limit, std::int64_t first, std::int64_t last) const {
  std::int64_t sum = 0;
  for (const Call& each : limit.calls) {
    const bool within = each.began >= first && each.ended <= last;
    if (within && each.answer == Answer::admitted) sum += each.cost;
  }
  return sum;
}

// Times are whole microseconds, both ends among them.
void Admissions::checkAdmitted(const Limit& limit) {
  const RateLaw& law = limit.law;
  const auto expect = [&](std::int64_t first, std::int64_t last, std::int64_t most) {
    const std::int64_t sum = surelyWithin(limit, first, last);
    if (sum <= most) return;
    judge_.fail(toString(law.kind), "has admitted " + std::to_string(sum) + " in " +
                                        std::to_string(last - first) + " us instead of " +
                                        std::to_string(most));
  };
  for (const Call& each : limit.calls) {
    if (each.answer != Answer::admitted) continue;
    if (law.kind == RateKind::slidingWindow) {
      expect(each.began, each.began + law.period - 1, law.limit);
    } else if (law.kind == RateKind::fixedWindow) {
      const std::int64_t start = each.began - each.began % law.period;
      expect(start, start + law.period - 1, law.limit);
    } else {
      for (const Call& other : limit.calls) {
        if (other.ended < each.began) continue;
        expect(each.began, other.ended,
               law.limit + law.unitsIn({.micros = other.ended - each.began, .parts = 0}));
      }
    }
  }
}

std::int64_t Admissions::mostUsed(const Limit& limit, const Call& refused) const {
  const RateLaw& law = limit.law;
  const std::int64_t first = earliestOf(law, refused);
  if (isBucket(law.kind)) return mostInBucket(limit, refused, first);
  std::int64_t most = 0;
  const auto count = [&](std::int64_t from, std::int64_t to) {
    std::int64_t sum = 0;
    for (const Call& each : limit.calls) {
      const bool mayCount = each.answer != Answer::refused && &each != &refused;
      if (mayCount && each.began <= to && latestOf(each) >= from) sum += each.cost;
    }
    most = std::max(most, sum);
  };
  if (law.kind == RateKind::slidingWindow) {
    count(first - law.period, refused.ended);
  } else {
    for (std::int64_t start = first - first % law.period; start <= refused.ended; start += law.period)
      count(start, std::min(start + law.period - 1, refused.ended));
  }
  return most;
}

// All that came before flows out from then on, at the latest.
std::int64_t Admissions::mostInBucket(const Limit& limit, const Call& refused, std::int64_t first) const {
  const RateLaw& law = limit.law;
  std::vector<Call> before;
  std::int64_t beside = 0;
  for (const Call& each : limit.calls) {
    if (each.answer == Answer::refused || &each == &refused || each.began > refused.ended) continue;
    if (latestOf(each) < first) {
      before.push_back(each);
    } else {
      beside += each.cost;
    }
  }
  std::sort(before.begin(), before.end(),
            [](const Call& left, const Call& right) { return latestOf(left) < latestOf(right); });
  // When it is empty again, as RateState has it.
  RateTime empty{.micros = std::numeric_limits<std::int64_t>::min() / 2, .parts = 0};
  for (const Call& each : before) {
    empty = std::max(empty, RateTime{.micros = latestOf(each), .parts = 0});
    empty = law.plus(empty, law.lengthOf(each.cost));
  }
  const RateTime then{.micros = first, .parts = 0};
  if (empty <= then) return beside;
  const RateTime length = law.minus(empty, then);
  return beside + law.unitsIn(length) + 1;  // a part of a unit counts
}

}  // namespace lockkeeper::simulation
