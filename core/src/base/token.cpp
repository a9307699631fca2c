#include "lockkeeper/driver/token.h"

namespace lockkeeper {

Token Token::generate(Random& random) {
  Token token;
  random.fill(token.bytes_);
  return token;
}

std::string Token::hex() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text(2 * size, '0');
  for (std::size_t i = 0; i < size; ++i) {
    const auto byte = std::to_integer<unsigned>(bytes_[i]);
    text[2 * i] = digits[byte >> 4];
    text[2 * i + 1] = digits[byte & 15];
  }
  return text;
}

}  // namespace lockkeeper
