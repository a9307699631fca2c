#include "lock/lock_value.h"

#include <array>

#include "lockkeeper/internal/hex.h"

namespace lockkeeper::redis {

ComposedText lockValue(const Claim& claim) {
  std::array<char, Token::size * 2> digits;
  char* end = digits.data();
  for (const std::byte byte : claim.token.bytes()) {
    *end++ = hexDigits[std::to_integer<unsigned>(byte) >> 4];
    *end++ = hexDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return {std::string_view(digits.data(), digits.size()), claim.owner.empty() ? "" : "@", claim.owner};
}

std::optional<std::string> ownerIn(std::string_view value) {
  value = withoutOffer(value);
  constexpr std::size_t digits = Token::size * 2;
  if (value.size() < digits) return std::nullopt;
  if (value.substr(0, digits).find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return std::nullopt;
  if (value.size() == digits) return std::string();
  if (value[digits] != '@') return std::nullopt;
  return std::string(value.substr(digits + 1));
}

}  // namespace lockkeeper::redis
