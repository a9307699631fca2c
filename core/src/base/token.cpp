#include "lockkeeper/base/token.h"

#include <algorithm>

#include "lockkeeper/base/hex.h"

namespace lockkeeper {

Token Token::generate(Random& random) {
  Token token;
  random.fill(token.bytes_);
  return token;
}

Token Token::fromBytes(std::span<const std::byte, size> bytes) noexcept {
  Token token;
  std::ranges::copy(bytes, token.bytes_.begin());
  return token;
}

std::string Token::hex() const {
  return toHex({reinterpret_cast<const char*>(bytes_.data()), bytes_.size()});
}

}  // namespace lockkeeper
