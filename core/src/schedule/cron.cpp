#include "schedule/cron.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/whole_number.h"

namespace lockkeeper::detail {
namespace {

using std::chrono::local_days;
using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 12> monthNames{"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                      "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> weekdayNames{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> macros{{{"@hourly", "0 * * * *"},
                                                                               {"@daily", "0 0 * * *"},
                                                                               {"@weekly", "0 0 * * 0"},
                                                                               {"@monthly", "0 0 1 * *"},
                                                                               {"@yearly", "0 0 1 1 *"}}};

/// One of the five fields.
struct Field {
  std::string_view name;
  unsigned least;
  unsigned most;
  Names names{};  // of `least` and those after it
};

constexpr Field minuteField{"minute", 0, 59};
constexpr Field hourField{"hour", 0, 23};
constexpr Field dayField{"day of the month", 1, 31};
constexpr Field monthField{"month", 1, 12, monthNames};
constexpr Field weekdayField{"day of the week", 0, 7, weekdayNames};

[[noreturn]] void refuse(const Field& field, std::string_view given) {
  std::string allowed = std::to_string(field.least) + " to " + std::to_string(field.most);
  if (!field.names.empty()) {
    allowed.append(", ").append(field.names.front()).append(" to ").append(field.names.back());
  }
  throw std::invalid_argument(
      "the " + std::string(field.name) + " is " + quoted(given) + ": " + allowed +
      ", ranges such as 2-5 and steps such as */5 or 2-10/3 are allowed, and lists of "
      "these with ','");
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find_first_of(separators);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// A number of the field, or a name.
std::optional<unsigned> number(const Field& field, std::string_view text) {
  const auto same = [](char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; };
  for (std::size_t at = 0; at < field.names.size(); ++at) {
    if (std::ranges::equal(text, field.names[at], same)) return field.least + static_cast<unsigned>(at);
  }
  const auto value = wholeNumber<unsigned>(text);
  return value && *value >= field.least && *value <= field.most ? value : std::nullopt;
}

/// One part of a list: `*`, a number or a range, and a step.
template <class Add>
void readPart(const Field& field, std::string_view part, Add add) {
  const std::size_t slash = part.find('/');
  const std::string_view range = part.substr(0, slash);
  std::optional<unsigned> first = field.least;
  std::optional<unsigned> last = field.most;
  if (range != "*") {
    const std::size_t dash = range.find('-');
    first = number(field, range.substr(0, dash));
    last = dash == std::string_view::npos ? first : number(field, range.substr(dash + 1));
    // A step begins somewhere and ends somewhere: readers of "5/10" disagree about its end.
    if (slash != std::string_view::npos && dash == std::string_view::npos) first.reset();
  }
  std::optional<unsigned> step = 1;
  if (slash != std::string_view::npos) step = wholeNumber<unsigned>(part.substr(slash + 1));
  if (!first || !last || *first > *last || !step || *step == 0 || *step > field.most) refuse(field, part);
  for (unsigned value = *first; value <= *last; value += *step) add(value);
}

template <std::size_t Size>
void readField(const Field& field, std::string_view text, std::bitset<Size>& set) {
  for (const std::string_view part : split(text, ",")) {
    readPart(field, part, [&](unsigned value) { set.set(value % Size); });  // Sunday is 0 and 7
  }
}

CronFields readFields(std::string_view expression) {
  auto fields = split(expression, " \t");
  std::erase(fields, std::string_view{});
  if (fields.size() != 5) {
    throw std::invalid_argument(
        "five fields are allowed (minute, hour, day of the month, month, day of the week), or @hourly, "
        "@daily, "
        "@weekly, @monthly, @yearly");
  }
  CronFields read;
  readField(minuteField, fields[0], read.minutes);
  readField(hourField, fields[1], read.hours);
  readField(dayField, fields[2], read.days);
  readField(monthField, fields[3], read.months);
  readField(weekdayField, fields[4], read.weekdays);
  read.everyDay = fields[2].starts_with('*');
  read.everyWeekday = fields[4].starts_with('*');
  if (!read.next(LocalMinutes{local_days{std::chrono::year{2000} / 1 / 1}})) {
    throw std::invalid_argument("it never comes: no month that it names has such a day");
  }
  return read;
}

}  // namespace

bool CronFields::names(local_days date) const {
  const std::chrono::year_month_day day{date};
  if (!months[static_cast<unsigned>(day.month())]) return false;
  const bool ofMonth = days[static_cast<unsigned>(day.day())];
  const bool ofWeek = weekdays[std::chrono::weekday{date}.c_encoding()];
  return everyDay || everyWeekday ? ofMonth && ofWeek : ofMonth || ofWeek;
}

std::optional<LocalMinutes> CronFields::next(LocalMinutes from) const {
  const auto today = std::chrono::floor<std::chrono::days>(from);
  for (local_days date = today; date < today + std::chrono::years{40}; date += std::chrono::days{1}) {
    if (!names(date)) continue;
    const auto begin = date == today ? from - today : std::chrono::minutes{0};
    for (auto hour = static_cast<std::size_t>(begin / std::chrono::hours{1}); hour < hours.size(); ++hour) {
      if (!hours[hour]) continue;
      const auto least =
          std::max<std::chrono::minutes>(begin - std::chrono::hours{hour}, std::chrono::minutes{0});
      for (auto minute = static_cast<std::size_t>(least.count()); minute < minutes.size(); ++minute) {
        if (minutes[minute]) return date + std::chrono::hours{hour} + std::chrono::minutes{minute};
      }
    }
  }
  return std::nullopt;
}

CronFields parseCron(std::string_view expression) {
  try {
    const auto* const macro =
        std::ranges::find(macros, expression, [](const auto& each) { return each.first; });
    return readFields(macro == macros.end() ? expression : macro->second);
  } catch (const std::invalid_argument& fault) {
    throw std::invalid_argument(quoted(expression) + " is not a cron expression: " + fault.what());
  }
}

}  // namespace lockkeeper::detail
