#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "lockkeeper/testing/history/record.h"

namespace lockkeeper::testing::history {

/// The words of the format, in the order of the enumerations.
/// @{
inline constexpr std::array<std::string_view, 6> operationNames{"lock", "renew", "release",
                                                                "read", "write", "take"};
inline constexpr std::array<std::string_view, 5> kindNames{"exclusive", "shared", "permits", "upgradeable",
                                                           "upgrade"};
inline constexpr std::array<std::string_view, 10> phaseNames{
    "invoke", "queued", "ok", "fail", "unknown", "lost", "died", "paused", "resumed", "end"};
/// @}

/// Writes an object of JSON on one line.
class JsonLine {
 public:
  /// Adds a member that is a number.
  JsonLine& number(std::string_view name, const auto& value) { return raw(name, std::to_string(value)); }
  /// As number(), or nothing if there is none.
  JsonLine& optional(std::string_view name, const auto& value) {
    return value ? number(name, *value) : *this;
  }
  /// Adds a member that is true or false.
  JsonLine& flag(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }

  /// Adds a member that is a string.
  JsonLine& text(std::string_view name, std::string_view value) {
    std::string quoted = "\"";
    for (const char each : value) {
      const auto byte = static_cast<unsigned char>(each);
      if (each == '"' || each == '\\') {
        quoted.append({'\\', each});
      } else if (byte < 0x20) {
        constexpr std::string_view digits = "0123456789abcdef";
        quoted.append("\\u00").append({digits[byte / 16], digits[byte % 16]});
      } else {
        quoted += each;
      }
    }
    return raw(name, quoted + "\"");
  }

  /// Without an end of line.
  std::string end() { return line_ + "}"; }

 private:
  JsonLine& raw(std::string_view name, const std::string& value) {
    line_.append(line_.size() > 1 ? ",\"" : "\"").append(name).append("\":").append(value);
    return *this;
  }

  std::string line_ = "{";
};

/// The first line of a history.
inline std::string toJson(const StorePromises& promises) {
  return JsonLine().number("history", 1).flag("fences", promises.fences).flag("fifo", promises.fifo).end();
}

/// The line of a record, without its end.
inline std::string toJson(const Record& record) {
  JsonLine line;
  line.number("time", record.time).text("phase", phaseNames[static_cast<std::size_t>(record.phase)]);
  if (record.phase == Phase::end) return record.key.empty() ? line.end() : line.text("key", record.key).end();
  line.text("process", record.process);
  const bool isOfProcess =
      record.phase == Phase::died || record.phase == Phase::paused || record.phase == Phase::resumed;
  if (isOfProcess) return line.end();
  line.number("id", record.id);
  if (record.phase == Phase::ok) {
    return line.optional("fence", record.fence)
        .optional("until", record.until)
        .optional("value", record.value)
        .optional("at", record.at)
        .end();
  }
  if (record.phase != Phase::invoke) return line.end();
  const Operation operation = record.operation;
  line.text("op", operationNames[static_cast<std::size_t>(operation)]);
  if (operation == Operation::lock) {
    line.text("key", record.key).text("kind", kindNames[static_cast<std::size_t>(record.kind)]);
    if (record.kind == Kind::permits)
      line.number("permits", record.permits.weight).number("limit", record.permits.limit);
  } else if (operation == Operation::take) {
    line.text("policy", record.policy).text("key", record.key).number("units", record.units);
  } else {
    line.number("grant", record.grant);
    if (operation == Operation::read || operation == Operation::write) line.text("key", record.key);
    if (operation == Operation::write) line.optional("value", record.value);
  }
  return line.optional("within", record.within).end();
}

}  // namespace lockkeeper::testing::history
