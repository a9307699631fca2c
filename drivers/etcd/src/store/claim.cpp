#include "store/claim.h"

#include <Poco/SHA1Engine.h>

#include <stdexcept>

#include "lockkeeper/internal/hex.h"
#include "lockkeeper/internal/whole_number.h"

namespace lockkeeper::etcd {

namespace {

constexpr std::string_view hexDigits = "0123456789abcdef";

constexpr char waitsMark = '?';

std::string permits(const Share& share) {
  return std::to_string(share.weight) + "/" + std::to_string(share.limit);
}

// A resize may have left a holder with more permits than there are.
std::optional<Share> shareIn(std::string_view permits) {
  const std::size_t slash = permits.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto weight = wholeNumber<std::uint32_t>(permits.substr(0, slash));
  const auto limit = wholeNumber<std::uint32_t>(permits.substr(slash + 1));
  if (!weight || !limit || *weight < 1 || *limit < 1) return std::nullopt;
  return Share{.weight = *weight, .limit = *limit};
}

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
  if (claim.share || !claim.owner.empty()) value.append("@").append(claim.owner);
  if (claim.share) value.append("@").append(permits(*claim.share));
  return value;
}

std::string waitingValueOf(const Claim& claim) {
  return claim.share ? valueOf(claim) + waitsMark : valueOf(claim);
}

std::optional<ClaimText> textIn(std::string_view value) {
  constexpr std::size_t digits = Token::size * 2;
  if (value.size() < digits) return std::nullopt;
  if (value.substr(0, digits).find_first_not_of(hexDigits) != std::string_view::npos) return std::nullopt;
  value.remove_prefix(digits);
  if (value.empty()) return ClaimText{};
  if (value.front() != '@') return std::nullopt;
  value.remove_prefix(1);
  const std::size_t end = value.find('@');
  ClaimText text{.owner = std::string(value.substr(0, end))};
  if (end == std::string_view::npos) return text;
  value.remove_prefix(end + 1);
  text.waits = value.ends_with(waitsMark);
  if (text.waits) value.remove_suffix(1);
  text.share = shareIn(value);
  return text.share ? std::optional(text) : std::nullopt;
}

std::string_view asGranted(std::string_view value) {
  const auto text = textIn(value);
  if (text && text->waits) value.remove_suffix(1);
  return value;
}

std::string withLimit(std::string_view value, std::uint32_t limit) {
  const auto text = textIn(value);
  if (!text || !text->share) throw std::invalid_argument("the value of a claim that is no share");
  std::string changed(value.substr(0, value.rfind('@') + 1));
  changed += permits({.weight = text->share->weight, .limit = limit});
  if (text->waits) changed += waitsMark;
  return changed;
}

}  // namespace lockkeeper::etcd
