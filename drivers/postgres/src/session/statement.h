#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/libpq/result.h"

namespace lockkeeper::postgres {

using libpq::Result;

/// What is sent for a '$n' of a statement.
struct Value {
  Value(std::nullptr_t) {}                                      // NOLINT: NULL
  Value(std::string text) : data(std::move(text)) {}            // NOLINT: as the server reads its type
  Value(const char* text) : data(text) {}                       // NOLINT
  Value(std::int64_t number) : data(std::to_string(number)) {}  // NOLINT
  /// For a BYTEA: any bytes.
  static Value bytes(std::string_view bytes) {
    Value value{std::string(bytes)};
    value.isBinary = true;
    return value;
  }

  std::optional<std::string> data{};
  bool isBinary = false;
};

/// One statement. Its text must not change from call to call: what differs stands in its values, so that the
/// server plans it once for each session.
struct Statement {
  std::string_view text;
  std::vector<Value> values{};
};

}  // namespace lockkeeper::postgres
