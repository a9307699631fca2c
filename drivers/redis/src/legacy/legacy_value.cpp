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

// What PHP's serialize() makes of an integer or a float: the number in it, else nothing.
std::string_view serializedNumber(std::string_view text) {
  const bool isNumber = (text.starts_with("i:") || text.starts_with("d:")) && text.ends_with(';');
  return isNumber ? text.substr(2, text.size() - 3) : std::string_view();
}

// ".5"; a value is shown up to its 256th byte only.
bool isFraction(std::string_view text) { return text.starts_with('.') && allDigits(text.substr(1)); }

std::string describe(std::string_view text) {
  if (text.empty()) return "an empty string";
  if (allDigits(serializedNumber(text))) return "a serialized PHP number that is no time in unix seconds";
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

// Empty when it is not in unix seconds.
std::optional<LegacyValue> legacyTime(std::string_view text) {
  const std::string_view serialized = serializedNumber(text);
  const std::string_view number = serialized.empty() ? text : serialized;
  const std::string_view rest = number.substr(std::min(secondsDigits, number.size()));
  if (!isSeconds(number.substr(0, secondsDigits)) || !(rest.empty() || isFraction(rest))) return std::nullopt;
  LegacyValue value{.kind = LegacyValue::Kind::digits, .ends = secondsIn(number.substr(0, secondsDigits))};
  // Never too early.
  if (!rest.empty()) value.ends += std::chrono::seconds{1};
  if (!serialized.empty()) {
    value.what = "a serialized PHP number: that client has a serializer switched on";
  } else if (!rest.empty()) {
    value.what = "unix seconds with a fraction";
  }
  return value;
}

}  // namespace

LegacyValue parseLegacyValue(std::string_view type, std::string_view value) {
  using Kind = LegacyValue::Kind;
  if (type == "none") return {};
  if (type != "string") return {.kind = Kind::foreign, .what = "a key of the type " + std::string(type)};
  if (auto time = legacyTime(value)) return *std::move(time);
  const std::string_view digits = value.substr(0, secondsDigits);
  if (isSeconds(digits) && isTokenAndOwner(value.substr(secondsDigits))) {
    return {
        .kind = Kind::withToken, .ends = secondsIn(digits), .owner = ownerAfter(value.substr(secondsDigits))};
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
