#include "lock/lock_value.h"

#include <array>

#include "lockkeeper/base/hex.h"

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

}  // namespace lockkeeper::redis
