#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lockkeeper/poco/settings.h"

namespace lockkeeper::poco {

/// One value that a configuration gives.
struct GivenValue {
  std::string setting;  ///< Its full name.
  std::string text;
};

/// All there is to know about a setting: what reads configurations, what lists the settings and what writes
/// docs/configuration.md go by these rows alone.
struct SettingRow {
  std::string_view name;      ///< `*` stands for one segment of the user's choice.
  std::string_view value;     ///< What may be written.
  std::string_view fallback;  ///< The default, read like a value; in parentheses when it is words.
  std::string_view meaning;   ///< One sentence, in Markdown.
  void (*read)(Settings& settings, const GivenValue& given);  ///< Null: read where it is used.

  /// Whether `fallback` is a value.
  bool hasFallback() const { return !fallback.starts_with('('); }
  bool matches(std::string_view setting) const;
};

std::span<const SettingRow> settingTable();

/// What readSettings(configuration).policies() are, whatever else the configuration says.
std::map<std::string, RatePolicy, std::less<>> readPolicies(
    const Poco::Util::AbstractConfiguration& configuration);

/// The row of a setting; null when it is unknown.
const SettingRow* findSetting(std::string_view setting);

/// The known name that is nearest to `setting`.
std::string nearestSetting(std::string_view setting);

}  // namespace lockkeeper::poco
