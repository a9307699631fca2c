#include "store/claim.h"

#include <Poco/SHA1Engine.h>

#include <stdexcept>
#include <utility>

#include "lockkeeper/base/hex.h"

namespace lockkeeper::etcd {

namespace {

constexpr char waitsMark = '?';

std::string permits(const Share& share) {
  return std::to_string(share.weight) + "/" + std::to_string(share.limit);
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
    const std::size_t high = std::string_view(hexDigits).find(text[i + 1]);
    const std::size_t low = std::string_view(hexDigits).find(text[i + 2]);
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

std::optional<ValueText> textIn(std::string_view value) {
  if (auto text = claimTextIn(value)) return ValueText{std::move(*text)};
  if (!value.ends_with(waitsMark)) return std::nullopt;
  value.remove_suffix(1);
  auto text = claimTextIn(value);
  return text && text->share ? std::optional(ValueText{std::move(*text), true}) : std::nullopt;
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
