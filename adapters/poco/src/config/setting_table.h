#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/setting_value.h"
#include "lockkeeper/poco/settings.h"

namespace lockkeeper::poco {

/// All there is to know about a setting: what reads configurations, what lists the settings and what writes
/// docs/configuration.md go by these rows alone.
struct SettingRow {
  std::string_view name;   ///< `*` stands for a name of the user's choice, which may have dots.
  std::string_view value;  ///< What may be written.

  /// The default where the field behind the setting does not tell it: a value; or in parentheses, words.
  std::string_view fallback;

  std::string_view meaning;  ///< One sentence, in Markdown.
  void (*read)(Settings& settings, const GivenValue& given);

  /// What the field has before anything is read, as it would be written. Null: see `fallback`.
  std::string (*initial)();

  /// The default in Markdown.
  std::string shownDefault() const;
};

std::span<const SettingRow> settingTable();

/// A row, and the names that stand for its `*`.
struct FoundSetting {
  const SettingRow* row;
  std::vector<std::string> names;
};

/// Empty when the setting is unknown.
std::optional<FoundSetting> findSetting(std::string_view setting);

/// What to do instead of a setting that there is no longer; empty for any other.
std::string_view insteadOf(std::string_view setting);

/// The known name that is nearest to `setting`, or that has taken its place.
std::string nearestSetting(std::string_view setting);

}  // namespace lockkeeper::poco
