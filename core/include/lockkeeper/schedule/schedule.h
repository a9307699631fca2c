#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

#include "lockkeeper/export.h"
#include "lockkeeper/schedule/time_zone.h"

namespace lockkeeper {

namespace detail {
struct CronFields;
}

/// When something is due: a series of ticks, the same on each machine. A tick is a moment in UTC, in whole
/// seconds. A value that never changes: cheap to copy, thread-safe.
class LOCKKEEPER_CORE_EXPORT Schedule {
 public:
  /// Five fields as in crontab(5): minute (0-59), hour (0-23), day of the month (1-31), month (1-12 or
  /// JAN-DEC), day of the week (0-7 or SUN-SAT; 0 and 7 are Sunday). Each is `*` or a list such as
  /// `1,10-20,30-50/5`; `*/5` is every fifth. If neither of the two fields for days begins with `*`, a day
  /// that either of them names is due. Or one of `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
  ///
  /// Each minute that the expression names is a tick at the first moment when the zone's clocks show this
  /// minute or a later one. So a time that comes twice, because clocks are set back, is one tick, the first
  /// time; and all times that clocks skip are one tick, at the moment after the gap.
  ///
  /// Throws std::invalid_argument that names the expression, the fault and what is allowed; also for an
  /// expression that is never due, such as `30 2 31 2 *`.
  static Schedule cron(std::string_view expression, TimeZone zone = {});

  /// Ticks at the whole multiples of `period` (whole seconds, 1 s to 366 days) since 1970 in UTC: `1h` is
  /// each full hour. Throws std::invalid_argument for another period.
  static Schedule every(std::chrono::milliseconds period);

  /// The first tick later than `after`. For the years 1900 to 9999.
  std::chrono::sys_seconds next(std::chrono::sys_seconds after) const;

  /// The period of every(); empty for cron(), whose ticks are at varying distances.
  std::optional<std::chrono::seconds> period() const noexcept;

 private:
  Schedule() = default;

  std::chrono::seconds period_{};                   // 0: cron
  std::shared_ptr<const detail::CronFields> cron_;  // null: every
  TimeZone zone_;
};

}  // namespace lockkeeper
