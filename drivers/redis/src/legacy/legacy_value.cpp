#include "legacy/legacy_value.h"

#include <algorithm>
#include <charconv>

#include "lock/lock_value.h"

namespace lockkeeper::redis {

namespace {

// Unix seconds from September 2001 to November 2286.
constexpr std::size_t secondsDigits = 10;
constexpr std::size_t millisecondsDigits = 13;
constexpr std::string_view largestExact = "9007199254740992";  // 2^53, above which a double skips integers
constexpr std::size_t longestToken = 64;

bool allDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool isSeconds(std::string_view text) {
  return text.size() == secondsDigits && allDigits(text) && text.front() != '0';
}

// ":token" or ":token@owner".
bool isTokenAndOwner(std::string_view text) {
  if (!text.starts_with(':')) return false;
  const std::string_view token = text.substr(1, text.find('@') - 1);
  const bool plain = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
  return !token.empty() && token.size() <= longestToken && plain;
}

std::string ownerAfter(std::string_view text) {
  const std::size_t at = text.find('@');
  return at == std::string_view::npos ? std::string() : std::string(text.substr(at + 1));
}

// PHP's serialize() of an integer.
bool isSerializedInteger(std::string_view text) {
  return text.starts_with("i:") && text.ends_with(';') && allDigits(text.substr(2, text.size() - 3));
}

std::string describe(std::string_view text) {
  if (text.empty()) return "an empty string";
  if (isSerializedInteger(text)) return "a serialized PHP integer: that client has a serializer switched on";
  if (!allDigits(text)) return "no number";
  if (text.size() > largestExact.size() || (text.size() == largestExact.size() && text > largestExact)) {
    return "a number beyond 2^53";
  }
  if (text.size() == millisecondsDigits) return "milliseconds, not seconds";
  return "a number that is no time in unix seconds";
}

std::chrono::seconds secondsIn(std::string_view digits) {
  std::int64_t count = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), count);
  return std::chrono::seconds{count};
}

}  // namespace

LegacyValue parseLegacyValue(std::string_view type, std::string_view value) {
  using Kind = LegacyValue::Kind;
  if (type == "none") return {};
  if (type != "string") return {.kind = Kind::foreign, .what = "a key of the type " + std::string(type)};
  const std::string_view digits = value.substr(0, secondsDigits);
  if (isSeconds(digits)) {
    const std::string_view rest = value.substr(secondsDigits);
    if (rest.empty()) return {.kind = Kind::digits, .ends = secondsIn(digits)};
    if (isTokenAndOwner(rest)) {
      return {.kind = Kind::withToken, .ends = secondsIn(digits), .owner = ownerAfter(rest)};
    }
  }
  return {.kind = Kind::foreign, .what = describe(value)};
}

std::string_view legacyGrant(std::string_view value) {
  return value.substr(0, secondsDigits + 1).ends_with(':') && value.size() > secondsDigits
             ? value.substr(secondsDigits)
             : value;
}

std::string legacySuffix(const Claim& claim) { return ":" + lockValue(claim).string(); }

}  // namespace lockkeeper::redis
