#pragma once

#include <chrono>

#include "lockkeeper/base/clock.h"

namespace lockkeeper::poco {

/// A sum over the last five to ten minutes.
class Lately {
 public:
  void add(Instant now, double amount) {
    *this = at(now);
    present_ += amount;
  }

  double sum(Instant now) const {
    const Lately rolled = at(now);
    return rolled.present_ + rolled.former_;
  }

 private:
  static constexpr std::chrono::minutes half{5};

  Lately at(Instant now) const {
    Lately rolled = *this;
    if (now - began_ < half) return rolled;
    rolled.former_ = now - began_ < 2 * half ? present_ : 0;
    rolled.present_ = 0;
    rolled.began_ = now;
    return rolled;
  }

  Instant began_{};
  double present_ = 0, former_ = 0;
};

}  // namespace lockkeeper::poco
