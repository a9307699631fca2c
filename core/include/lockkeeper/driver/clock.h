#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// The time scale of all leases and deadlines: nanoseconds since boot, going on while the machine sleeps,
/// untouched by anyone who sets the wall clock. It has no now(): only a `Clock` can tell the time.
struct BootTime {
  /// As the standard asks of a clock.
  /// @{
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootTime>;
  static constexpr bool is_steady = true;
  /// @}
};

/// A point on the boot-time scale.
using Instant = BootTime::time_point;

/// Tells boot time and waits on it. Everything in lockkeeper that measures or waits takes a Clock, so that
/// tests and simulations replace time by one object. Implementations are thread-safe.
class LOCKKEEPER_CORE_EXPORT Clock {
 public:
  virtual ~Clock() = default;

  /// Now, on the boot-time scale. Never goes back.
  virtual Instant now() const noexcept = 0;

  /// Blocks until `wakeUp` is notified, or `until` has come, or earlier for no reason: call it in a loop that
  /// checks its condition. `held` must own the mutex that guards the condition.
  virtual void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) = 0;
};

/// The machine's own clock (CLOCK_BOOTTIME). One object for the process.
LOCKKEEPER_CORE_EXPORT std::shared_ptr<Clock> systemClock();

/// `from + length` without overflow: saturates at Instant::max().
LOCKKEEPER_CORE_EXPORT Instant saturatingAdd(Instant from, std::chrono::nanoseconds length) noexcept;

}  // namespace lockkeeper
