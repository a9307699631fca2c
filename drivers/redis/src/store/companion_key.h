#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/protocol/composed_text.h"

namespace lockkeeper::redis {

/// The slot of a key in a Redis Cluster: CRC16 of its hash tag, or of all of it, modulo 16384
/// (https://redis.io/docs/reference/cluster-spec/#key-distribution-model).
std::uint16_t hashSlot(std::string_view key);

/// A short hash tag in that slot, without its braces. The first call costs some milliseconds.
std::string tagInSlot(std::uint16_t slot);

/// The key under which `name` (such as "fence") is kept beside `key`: in the same hash slot, different for
/// different keys, and with the mark that no lock's key may contain.
ComposedText companionKey(std::string_view key, std::string_view name);

/// Where the value `key` is kept. The reserved mark comes first, so that no lock has this key and a hash tag
/// in the caller's key still counts.
std::string valueKey(std::string_view key);

/// Where a table of shared records is kept.
std::string tableKey(std::string_view table);

}  // namespace lockkeeper::redis
