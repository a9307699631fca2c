#include "lock/lock_value.h"

namespace lockkeeper::redis {

std::string lockValue(const Claim& claim) {
  std::string value = claim.token.hex();
  if (!claim.owner.empty()) value.append("@").append(claim.owner);
  return value;
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
