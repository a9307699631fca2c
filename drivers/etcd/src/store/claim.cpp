#include "store/claim.h"

#include <Poco/SHA1Engine.h>

#include "lockkeeper/internal/hex.h"

namespace lockkeeper::etcd {

namespace {

constexpr std::string_view hexDigits = "0123456789abcdef";

bool standsForItself(char c) { return c > ' ' && c <= '~' && c != '/' && c != '%'; }

}  // namespace

std::string encoded(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (standsForItself(c)) {
      text += c;
    } else {
      text += '%';
      appendHex(text, static_cast<unsigned char>(c));
    }
  }
  return text;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string key;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (standsForItself(text[i])) {
      key += text[i];
      continue;
    }
    if (text[i] != '%' || i + 2 >= text.size()) return std::nullopt;
    const std::size_t high = hexDigits.find(text[i + 1]);
    const std::size_t low = hexDigits.find(text[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    key += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return key.empty() ? std::nullopt : std::optional(key);
}

std::string digestOf(const Token& token) {
  Poco::SHA1Engine engine;
  engine.update(token.hex());
  return Poco::DigestEngine::digestToHex(engine.digest());
}

std::string valueOf(const Claim& claim) {
  std::string value = claim.token.hex();
  if (!claim.owner.empty()) value.append("@").append(claim.owner);
  return value;
}

std::optional<std::string> ownerIn(std::string_view value) {
  constexpr std::size_t digits = Token::size * 2;
  if (value.size() < digits) return std::nullopt;
  if (value.substr(0, digits).find_first_not_of(hexDigits) != std::string_view::npos) return std::nullopt;
  if (value.size() == digits) return std::string();
  if (value[digits] != '@') return std::nullopt;
  return std::string(value.substr(digits + 1));
}

}  // namespace lockkeeper::etcd
