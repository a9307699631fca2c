#pragma once

#include "lockkeeper/rate_policy.h"

namespace lockkeeper::test {

/// What the processes of rate_taker.cpp share.
inline RatePolicy takersPolicy() {
  return RatePolicy("p", {.rate = {5000, std::chrono::seconds{1}}, .burst = 50});
}

}  // namespace lockkeeper::test
