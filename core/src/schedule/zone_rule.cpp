#include "schedule/zone_rule.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <string>

#include "lockkeeper/error.h"

namespace lockkeeper::detail {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::minutes;
using std::chrono::months;
using std::chrono::seconds;
using std::chrono::sys_seconds;
using std::chrono::weekday;
using std::chrono::year;

/// Reads a rule from left to right.
class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text), rest_(text) {}

  ZoneRule read() {
    ZoneRule rule;
    name();
    rule.standard_ = -time(24);  // POSIX counts westwards
    if (rest_.empty()) return rule;
    rule.changes_ = true;
    name();
    rule.daylight_ = rest_.starts_with(',') ? rule.standard_ + hours{1} : -time(24);
    rule.begin_ = yearDay();
    rule.end_ = yearDay();
    check(rest_.empty());
    return rule;
  }

 private:
  void check(bool good) const {
    if (!good) throw std::invalid_argument(quoted(text_) + " is not the rule of a time zone");
  }

  bool skip(char expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  int number(int least, int most) {
    int value = 0;
    const char* const end = rest_.data() + rest_.size();
    const auto [next, fault] = std::from_chars(rest_.data(), end, value);
    check(fault == std::errc{} && !rest_.starts_with('-') && value >= least && value <= most);
    rest_.remove_prefix(static_cast<std::size_t>(next - rest_.data()));
    return value;
  }

  void name() {
    const bool bracketed = skip('<');
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    const auto end = bracketed ? std::ranges::find(rest_, '>') : std::ranges::find_if_not(rest_, letter);
    const auto length = static_cast<std::size_t>(end - rest_.begin());
    check(length >= 3);
    rest_.remove_prefix(length);
    if (bracketed) check(skip('>'));
  }

  seconds time(int mostHours) {
    const bool negative = skip('-');
    if (!negative) skip('+');
    seconds value = hours{number(0, mostHours)};
    if (skip(':')) value += minutes{number(0, 59)};
    if (skip(':')) value += seconds{number(0, 59)};
    return negative ? -value : value;
  }

  ZoneRule::YearDay yearDay() {
    using Kind = ZoneRule::YearDay::Kind;
    ZoneRule::YearDay read;
    check(skip(','));
    if (skip('M')) {
      read.month = number(1, 12);
      check(skip('.'));
      read.week = number(1, 5);
      check(skip('.'));
      read.day = number(0, 6);
    } else if (skip('J')) {
      read.kind = Kind::dayWithoutLeapDay;
      read.day = number(1, 365);
    } else {
      read.kind = Kind::dayFromZero;
      read.day = number(0, 365);
    }
    read.time = skip('/') ? time(167) : hours{2};
    return read;
  }

  const std::string_view text_;
  std::string_view rest_;
};

ZoneRule ZoneRule::parse(std::string_view text) { return RuleReader(text).read(); }

local_seconds ZoneRule::YearDay::in(year year) const {
  using namespace std::chrono;
  const local_days newYear{year / January / 1};
  switch (kind) {
    case Kind::dayFromZero:
      return newYear + days{day} + time;
    case Kind::dayWithoutLeapDay:  // 1 to 365, and March 1st is always day 60
      return newYear + days{day - 1 + (year.is_leap() && day >= 60 ? 1 : 0)} + time;
    case Kind::weekdayOfMonth:
      break;
  }
  const auto of = year / std::chrono::month{static_cast<unsigned>(month)};
  const std::chrono::weekday wanted{static_cast<unsigned>(day)};
  const local_days date =
      week == 5 ? local_days{of / wanted[last]} : local_days{of / wanted[static_cast<unsigned>(week)]};
  return date + time;
}

void ZoneRule::addChanges(year year, std::vector<OffsetChange>& changes) const {
  const auto utc = [](local_seconds local, seconds offset) {
    return sys_seconds{local.time_since_epoch() - offset};
  };
  changes.push_back({utc(begin_.in(year), standard_), daylight_});
  changes.push_back({utc(end_.in(year), daylight_), standard_});
}

TimeZone::Span ZoneRule::spanAt(sys_seconds when) const {
  if (!changes_) return {beginningOfTime, endOfTime, standard_};
  const auto now = std::chrono::year_month_day{std::chrono::floor<days>(when)}.year();
  std::vector<OffsetChange> changes;
  for (year each = now - std::chrono::years{2}; each <= now + std::chrono::years{2}; ++each) {
    addChanges(each, changes);
  }
  // Stable: where a year's daylight-saving time ends as that of the next one begins, it goes on.
  std::ranges::stable_sort(changes, {}, &OffsetChange::at);
  const auto next = std::ranges::upper_bound(changes, when, {}, &OffsetChange::at);
  return {std::prev(next)->at, next->at, std::prev(next)->offset};
}

}  // namespace lockkeeper::detail
