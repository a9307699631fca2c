#include "lockkeeper/base/token.h"

#include "lockkeeper/internal/hex.h"

namespace lockkeeper {

Token Token::generate(Random& random) {
  Token token;
  random.fill(token.bytes_);
  return token;
}

std::string Token::hex() const {
  std::string text;
  text.reserve(2 * size);
  for (const std::byte byte : bytes_) appendHex(text, std::to_integer<unsigned char>(byte));
  return text;
}

}  // namespace lockkeeper
