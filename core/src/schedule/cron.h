#pragma once

#include <bitset>
#include <chrono>
#include <optional>
#include <string_view>

namespace lockkeeper::detail {

using LocalMinutes = std::chrono::local_time<std::chrono::minutes>;

/// What a cron expression names, on a calendar without time zones.
struct CronFields {
  std::bitset<60> minutes{};
  std::bitset<24> hours{};
  std::bitset<32> days{};    // from 1
  std::bitset<13> months{};  // from 1
  std::bitset<7> weekdays{};
  bool everyDay = false;      // its field begins with '*'
  bool everyWeekday = false;  // its field begins with '*', too

  /// The first minute it names, from this one on. Empty when none comes within 40 years.
  std::optional<LocalMinutes> next(LocalMinutes from) const;

  /// Whether it names times on this day.
  bool names(std::chrono::local_days date) const;
};

/// See Schedule::cron().
CronFields parseCron(std::string_view expression);

}  // namespace lockkeeper::detail
