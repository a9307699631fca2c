#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// The time scale of all leases and deadlines: nanoseconds since boot. It continues while the machine sleeps,
/// and does not change when somebody sets the wall clock. It has no now(): only a `Clock` can tell the time.
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

/// A calendar time: UTC according to this machine. It jumps when somebody sets the clock, and differs between
/// machines. Only schedules use it; leases and deadlines do not. A limit of the embedded store reads it once,
/// when it is made, to align its windows with the calendar.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

/// Tells boot time and waits on it. Everything in lockkeeper that measures time or waits uses a Clock, so
/// that tests and simulations can replace time by one object. Implementations are thread-safe.
class LOCKKEEPER_CORE_EXPORT Clock {
 public:
  virtual ~Clock() = default;

  /// The present time on the boot-time scale. Never goes back.
  virtual Instant now() const noexcept = 0;

  /// The present time in UTC. May go back. By default the machine's (CLOCK_REALTIME).
  virtual WallTime wallNow() const noexcept;

  /// Blocks until `wakeUp` is notified or `until` has come. It may return earlier: call it in a loop that
  /// checks the condition. `held` must own the mutex that guards the condition.
  virtual void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) = 0;
};

/// The machine's own clock (CLOCK_BOOTTIME). One object for the process.
LOCKKEEPER_CORE_EXPORT std::shared_ptr<Clock> systemClock();

/// `length` in nanoseconds, without overflow: they end after 292 years, and a store or a caller may name
/// longer times in coarser units.
template <class Rep, class Period>
constexpr std::chrono::nanoseconds saturated(std::chrono::duration<Rep, Period> length) noexcept {
  using std::chrono::nanoseconds;
  using Length = std::chrono::duration<Rep, Period>;
  if (length > std::chrono::duration_cast<Length>(nanoseconds::max())) return nanoseconds::max();
  if (length < std::chrono::duration_cast<Length>(nanoseconds::min())) return nanoseconds::min();
  return std::chrono::duration_cast<nanoseconds>(length);
}

/// `from + length` without overflow: saturates at the ends of the scale.
template <class Rep, class Period>
constexpr Instant saturatingAdd(Instant from, std::chrono::duration<Rep, Period> length) noexcept {
  const std::chrono::nanoseconds added = saturated(length);
  if (from.time_since_epoch().count() > 0 && added > Instant::max() - from) return Instant::max();
  if (from.time_since_epoch().count() < 0 && added < Instant::min() - from) return Instant::min();
  return from + added;
}

}  // namespace lockkeeper
