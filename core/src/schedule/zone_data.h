#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/zone_rule.h"

namespace lockkeeper::detail {

/// What a TZif file says of a zone.
struct ZoneData {
  std::string name{};
  std::chrono::seconds initial{};        ///< The offset before the first change.
  std::vector<OffsetChange> changes{};   ///< By time.
  std::optional<ZoneRule> afterwards{};  ///< Empty: the last offset stays.
};

/// Reads the bytes of a TZif file (RFC 8536). Throws std::invalid_argument that says what is wrong with them.
ZoneData readZone(std::string_view name, std::string_view bytes);

}  // namespace lockkeeper::detail
