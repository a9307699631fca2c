#include "store/companion_key.h"

#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "lockkeeper/base/key.h"

namespace lockkeeper::redis {

namespace {

constexpr std::uint16_t slots = 16384;

// CRC-16/XMODEM: polynomial 0x1021, start 0.
constexpr std::array<std::uint16_t, 256> makeTable() {
  std::array<std::uint16_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000U) != 0 ? (crc << 1) ^ 0x1021U : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}

std::uint16_t crc16(std::string_view bytes) {
  static constexpr auto table = makeTable();
  std::uint32_t crc = 0;
  for (const char byte : bytes)
    crc = (crc << 8) ^ table[((crc >> 8) ^ static_cast<unsigned char>(byte)) & 0xFFU];
  return static_cast<std::uint16_t>(crc);
}

std::optional<std::string_view> hashTag(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open == std::string_view::npos) return std::nullopt;
  const std::size_t close = key.find('}', open);
  if (close == std::string_view::npos || close == open + 1) return std::nullopt;
  return key.substr(open + 1, close - open - 1);
}

// By slot. Ends: the decimal numbers below 200,000 meet every slot.
std::vector<std::uint32_t> smallestTags() {
  constexpr auto none = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> tags(slots, none);
  std::uint32_t missing = slots;
  for (std::uint32_t number = 0; missing > 0; ++number) {
    std::uint32_t& tag = tags[crc16(std::to_string(number)) % slots];
    if (tag != none) continue;
    tag = number;
    --missing;
  }
  return tags;
}

}  // namespace

std::uint16_t hashSlot(std::string_view key) { return crc16(hashTag(key).value_or(key)) % slots; }

std::string tagInSlot(std::uint16_t slot) {
  static const std::vector<std::uint32_t>& tags = *new std::vector(smallestTags());
  return std::to_string(tags[slot]);
}

ComposedText companionKey(std::string_view key, std::string_view name) {
  // "tagged", lest the companion of "{x}" be that of "x".
  if (hashTag(key)) return {key, reservedMark, name, ":tagged"};
  if (key.find('}') == std::string_view::npos) return {"{", key, "}", reservedMark, name};
  return {"{", tagInSlot(hashSlot(key)), "}", reservedMark, name, ":", key};
}

std::string valueKey(std::string_view key) { return std::string(reservedMark).append("v:").append(key); }

// "board" is what a table was called when the first fleets were deployed: the name of the key stays.
std::string tableKey(std::string_view table) {
  return std::string(table).append(reservedMark).append("board");
}

}  // namespace lockkeeper::redis
