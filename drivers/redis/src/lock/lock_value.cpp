#include "lock/lock_value.h"

#include <array>
#include <cstdint>

#include "lockkeeper/internal/hex.h"
#include "lockkeeper/internal/whole_number.h"

namespace lockkeeper::redis {

ComposedText lockValue(const Claim& claim) {
  std::array<char, Token::size * 2> digits;
  char* end = digits.data();
  for (const std::byte byte : claim.token.bytes()) {
    *end++ = hexDigits[std::to_integer<unsigned>(byte) >> 4];
    *end++ = hexDigits[std::to_integer<unsigned>(byte) & 15];
  }
  const std::string_view token(digits.data(), digits.size());
  if (!claim.share) return {token, claim.owner.empty() ? "" : "@", claim.owner};
  return {token,
          "@",
          claim.owner,
          "@",
          std::to_string(claim.share->weight),
          "/",
          std::to_string(claim.share->limit)};
}

namespace {

constexpr std::size_t digits = Token::size * 2;

// Of what comes after the token and its '@'. No owner has an '@'.
constexpr std::size_t endOfOwner(std::string_view value) { return value.find('@', digits + 1); }

}  // namespace

bool isShare(std::string_view value) { return endOfOwner(withoutOffer(value)) != std::string_view::npos; }

std::optional<Share> shareIn(std::string_view value) {
  value = withoutOffer(value);
  if (!isShare(value)) return std::nullopt;
  value.remove_prefix(endOfOwner(value) + 1);
  const std::size_t slash = value.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto weight = wholeNumber<std::uint32_t>(value.substr(0, slash));
  const auto limit = wholeNumber<std::uint32_t>(value.substr(slash + 1));
  if (!weight || !limit) return std::nullopt;
  return Share{.weight = *weight, .limit = *limit};
}

std::optional<std::string> ownerIn(std::string_view value) {
  value = withoutOffer(value);
  if (value.size() < digits) return std::nullopt;
  if (value.substr(0, digits).find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return std::nullopt;
  if (value.size() == digits) return std::string();
  if (value[digits] != '@') return std::nullopt;
  const std::size_t end = shareIn(value) ? endOfOwner(value) : value.size();
  return std::string(value.substr(digits + 1, end - digits - 1));
}

}  // namespace lockkeeper::redis
