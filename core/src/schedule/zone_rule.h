#pragma once

#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include "lockkeeper/schedule/time_zone.h"

namespace lockkeeper::detail {

/// Far before and after all times that anybody asks for, and far enough from the ends of the type to add to.
inline constexpr std::chrono::sys_seconds beginningOfTime{std::chrono::seconds{-1'000'000'000'000}};
inline constexpr std::chrono::sys_seconds endOfTime{std::chrono::seconds{1'000'000'000'000}};

/// From `at` on, the offset is `offset`.
struct OffsetChange {
  std::chrono::sys_seconds at;
  std::chrono::seconds offset;
};

/// The rule that a zone follows after the last change that its file lists: a TZ string as in POSIX, with the
/// extensions of RFC 8536, such as "CET-1CEST,M3.5.0,M10.5.0/3".
class ZoneRule {
 public:
  /// Throws std::invalid_argument that names the text.
  static ZoneRule parse(std::string_view text);

  TimeZone::Span spanAt(std::chrono::sys_seconds when) const;

 private:
  friend class RuleReader;

  /// When in a year the offset changes, in local time.
  struct YearDay {
    enum class Kind { weekdayOfMonth, dayWithoutLeapDay, dayFromZero } kind = Kind::weekdayOfMonth;
    int month = 0;  // 1 to 12
    int week = 0;   // 1 to 5, which is the last one
    int day = 0;    // of the week, 0 for Sunday; or of the year
    std::chrono::seconds time{};

    std::chrono::local_seconds in(std::chrono::year year) const;
  };

  void addChanges(std::chrono::year year, std::vector<OffsetChange>& changes) const;

  std::chrono::seconds standard_{};
  std::chrono::seconds daylight_{};
  bool changes_ = false;
  YearDay begin_;  // of daylight-saving time
  YearDay end_;
};

}  // namespace lockkeeper::detail
