#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "config/setting_table.h"

namespace lockkeeper::poco {

using Names = std::vector<std::string>;

/// A row for one field of Settings, which `Field` finds: `auto& (Settings&, const Names&)`, without a
/// capture. The field's type says how it is read and written, and without a `fallback` its value is the
/// default.
template <class Field>
constexpr SettingRow row(std::string_view name, std::string_view value, std::string_view fallback,
                         std::string_view meaning, Field) {
  SettingRow made{.name = name,
                  .value = value,
                  .fallback = fallback,
                  .meaning = meaning,
                  .read = [](Settings& settings,
                             const GivenValue& given) { parse(given, Field{}(settings, given.names)); },
                  .initial = nullptr};
  if (fallback.empty()) {
    made.initial = [] {
      Settings untouched;
      return written(Field{}(untouched, Names{"NAME", "NAME"}));
    };
  }
  return made;
}

/// The element of that name, which is added when there is none.
template <class Element>
Element& named(std::vector<Element>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Element::name);
  if (found != all.end()) return *found;
  all.emplace_back();
  all.back().name = name;
  return all.back();
}

inline constexpr std::string_view durationText = "duration";
inline constexpr std::string_view uriText = "URI";
inline constexpr std::string_view numberText = "number";
inline constexpr std::string_view bytesText = "bytes";
inline constexpr std::string_view nameText = "name";
inline constexpr std::string_view switchText = "on, off";

/// The rows of lockkeeper.http.
std::span<const SettingRow> httpRows();

}  // namespace lockkeeper::poco
