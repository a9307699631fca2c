#pragma once

#include <time.h>

#include "simulation/machine/scheduler.h"

namespace lockkeeper::simulation {

inline Time lengthOf(const timespec* length) noexcept {
  return length->tv_sec > never / second - 1 ? never : length->tv_sec * second + length->tv_nsec;
}

/// What that clock says on the computer of this thread.
inline Time clockOf(const Scheduler& scheduler, clockid_t clock) noexcept {
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  return wall ? scheduler.wallTime(scheduler.thisProcess()) : scheduler.bootTime(scheduler.thisProcess());
}

/// The simulated time at which that clock will say `until`.
inline Time untilOf(const Scheduler& scheduler, clockid_t clock, const timespec* until) noexcept {
  const Time there = lengthOf(until);
  return there == never ? never : scheduler.after(there - clockOf(scheduler, clock));
}

}  // namespace lockkeeper::simulation
