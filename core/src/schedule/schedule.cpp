#include "lockkeeper/schedule/schedule.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "lockkeeper/duration.h"
#include "schedule/cron.h"
#include "schedule/zone_rule.h"

namespace lockkeeper {
namespace {

using detail::LocalMinutes;
using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

/// No zone's clocks differ from UTC by more, nor are they set by more at once.
constexpr std::chrono::hours farthestOffset{26};

local_seconds shown(sys_seconds when, seconds offset) {
  return local_seconds{when.time_since_epoch() + offset};
}
sys_seconds utc(local_seconds local, seconds offset) {
  return sys_seconds{local.time_since_epoch() - offset};
}

/// The first moment when the zone's clocks show `local` or a later time.
sys_seconds firstMoment(const TimeZone& zone, local_seconds local) {
  auto span = zone.spanAt(utc(local, farthestOffset));
  while (shown(span.end, span.offset) <= local) span = zone.spanAt(span.end);
  return std::max(span.begin, utc(local, span.offset));
}

/// The latest time that the zone's clocks have shown until `when`, with it: later than what they show at
/// `when`, if they were set back a short time ago.
local_seconds latestShown(const TimeZone& zone, sys_seconds when) {
  auto span = zone.spanAt(when);
  local_seconds latest = shown(when, span.offset);
  const sys_seconds earliest = when - 2 * farthestOffset;
  while (span.begin > earliest) {
    const sys_seconds before = span.begin - seconds{1};
    span = zone.spanAt(before);
    latest = std::max(latest, shown(before, span.offset));
  }
  return latest;
}

}  // namespace

Schedule Schedule::cron(std::string_view expression, TimeZone zone) {
  Schedule made;
  made.cron_ = std::make_shared<const detail::CronFields>(detail::parseCron(expression));
  made.zone_ = std::move(zone);
  return made;
}

std::optional<seconds> Schedule::period() const noexcept {
  return cron_ ? std::nullopt : std::optional(period_);
}

Schedule Schedule::every(std::chrono::milliseconds period) {
  checkDuration("the period of a schedule", period, seconds{1}, std::chrono::hours{24 * 366});
  Schedule made;
  made.period_ = std::chrono::duration_cast<seconds>(period);
  if (made.period_ != period) {
    throw std::invalid_argument("the period of a schedule is " + formatDuration(period) +
                                ": whole seconds are allowed");
  }
  return made;
}

sys_seconds Schedule::next(sys_seconds after) const {
  if (!cron_) {
    const auto since = after.time_since_epoch();
    const auto begun = since / period_ - (since % period_ < seconds{0} ? 1 : 0);
    return sys_seconds{(begun + 1) * period_};
  }
  const auto latest = std::chrono::floor<std::chrono::minutes>(latestShown(zone_, after));
  const auto found = cron_->next(latest + std::chrono::minutes{1});
  if (!found) throw std::logic_error("a cron expression that comes has no next time");
  return firstMoment(zone_, *found);
}

}  // namespace lockkeeper
