#include "console/json.h"

#include <Poco/JSONString.h>

#include <chrono>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/utf8.h"

namespace lockkeeper::poco {

std::string jsonText(std::string_view text) {
  return isUtf8(text) ? std::string(text) : printable(text, text.size());
}

std::string jsonString(std::string_view text) {
  return Poco::toJSON(jsonText(text), Poco::JSON_WRAP_STRINGS | Poco::JSON_ESCAPE_UNICODE);
}

std::string jsonStringOrNull(std::string_view text) { return text.empty() ? "null" : jsonString(text); }

std::int64_t inMilliseconds(Instant at) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count();
}

std::string jsonTimeOrNull(const std::optional<Instant>& at) {
  return at ? std::to_string(inMilliseconds(*at)) : "null";
}

std::string migrationRow(std::string_view name, std::string_view rules, const std::optional<Instant>& since) {
  return jsonArray({jsonString(name), jsonString(rules), jsonTimeOrNull(since)});
}

std::string jsonArray(std::initializer_list<std::string_view> values) {
  std::string items;
  for (const std::string_view each : values) appendItem(items, each);
  return "[" + items + "]";
}

void appendItem(std::string& items, std::string_view item) {
  if (!items.empty()) items += ",";
  items += item;
}

}  // namespace lockkeeper::poco
