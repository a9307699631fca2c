#pragma once

#include <Poco/NumberParser.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/as_configured.h"
#include "lockkeeper/lock_options.h"
#include "lockkeeper/migration/migration_options.h"
#include "lockkeeper/schedule/scheduled_task.h"

namespace lockkeeper::poco {

/// One value that a configuration gives.
struct GivenValue {
  std::string setting;               ///< Its full name.
  std::vector<std::string> names{};  ///< What stands for each `*` of its row.
  std::string text{};                ///< Not empty.
};

// Reading a value by the type of what keeps it, and writing that back. What is not understood is a
// ConfigError that names the setting, its value and what is allowed; ranges are checked by whoever uses the
// value.

void parse(const GivenValue& given, bool& value);
void parse(const GivenValue& given, std::chrono::milliseconds& value);
void parse(const GivenValue& given, std::string& value);
void parse(const GivenValue& given, Renew& value);
void parse(const GivenValue& given, Missed& value);
void parse(const GivenValue& given, migration::Rules& value);

template <std::unsigned_integral Number>
void parse(const GivenValue& given, Number& value) {
  Poco::UInt64 number = 0;
  if (!Poco::NumberParser::tryParseUnsigned64(given.text, number) || !std::in_range<Number>(number)) {
    throw ConfigError(given.setting + " is " + lockkeeper::quoted(given.text) +
                      ": whole numbers are allowed");
  }
  value = static_cast<Number>(number);
}

template <class T>
void parse(const GivenValue& given, std::optional<T>& value) {
  parse(given, value.emplace());
}

std::string written(bool value);
std::string written(std::chrono::milliseconds value);
std::string written(const std::string& value);
std::string written(Renew value);
std::string written(Missed value);
std::string written(const migration::Rules& value);

template <std::unsigned_integral Number>
std::string written(Number value) {
  return std::to_string(value);
}

/// Empty for none.
template <class T>
std::string written(const std::optional<T>& value) {
  return value ? written(*value) : "";
}

}  // namespace lockkeeper::poco
