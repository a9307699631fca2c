#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "config/edit_distance.h"
#include "config/setting_table.h"

namespace lockkeeper::poco {
namespace {

/// Takes the first segment off `rest`, which is empty after the last one.
std::optional<std::string_view> nextSegment(std::optional<std::string_view>& rest) {
  if (!rest) return std::nullopt;
  const auto dot = rest->find('.');
  const auto segment = rest->substr(0, dot);
  rest = dot == std::string_view::npos ? std::nullopt : std::optional(rest->substr(dot + 1));
  return segment;
}

/// The row's name with the user's own segments of `setting`, as far as it has them.
std::string filledIn(std::string_view pattern, std::string_view setting) {
  std::optional patterns(pattern);
  std::optional names(setting);
  std::string full;
  while (const auto segment = nextSegment(patterns)) {
    const auto given = nextSegment(names);
    full.append(full.empty() ? "" : ".").append(*segment != "*" ? *segment : given.value_or("NAME"));
  }
  return full;
}

}  // namespace

bool SettingRow::matches(std::string_view setting) const { return filledIn(name, setting) == setting; }

const SettingRow* findSetting(std::string_view setting) {
  const auto rows = settingTable();
  const auto found = std::ranges::find_if(rows, [&](const SettingRow& row) { return row.matches(setting); });
  return found == rows.end() ? nullptr : &*found;
}

std::string nearestSetting(std::string_view setting) {
  std::string nearest;
  auto least = std::numeric_limits<std::size_t>::max();
  for (const SettingRow& row : settingTable()) {
    std::string known = filledIn(row.name, setting);
    const std::size_t distance = editDistance(setting, known);
    if (distance >= least) continue;
    least = distance;
    nearest = std::move(known);
  }
  return nearest;
}

}  // namespace lockkeeper::poco
