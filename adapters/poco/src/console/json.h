#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/base/clock.h"

namespace lockkeeper::poco {

/// A text for JSON: what is not UTF-8 is escaped, as in `lockkeeper list --json`.
std::string jsonText(std::string_view text);

/// The same with quotes around it, as a value of JSON.
std::string jsonString(std::string_view text);

/// The same; null for an empty text.
std::string jsonStringOrNull(std::string_view text);

/// Milliseconds of boot time.
std::int64_t inMilliseconds(Instant at);

/// The same; null when there is none.
std::string jsonTimeOrNull(const std::optional<Instant>& at);

/// How the page has a migration, whoever knows of it: [name, rules, since].
std::string migrationRow(std::string_view name, std::string_view rules, const std::optional<Instant>& since);

/// A JSON array of these values of JSON.
std::string jsonArray(std::initializer_list<std::string_view> values);

/// Appends an item to the items of a JSON array.
void appendItem(std::string& items, std::string_view item);

/// Which keys a console shows, and how.
struct KeyScope {
  std::string prefix;      ///< As the store knows it.
  std::size_t hidden = 0;  ///< So many bytes of each key are not shown.

  bool has(std::string_view key) const { return key.starts_with(prefix); }
  /// The key of the store as the page has it.
  std::string shown(std::string_view key) const { return jsonText(key.substr(hidden)); }
};

}  // namespace lockkeeper::poco
