#include "http/idempotency/idempotency_key.h"

#include <Poco/SHA2Engine.h>
#include <Poco/String.h>

#include <algorithm>

namespace lockkeeper::poco {

namespace {

constexpr auto fieldName = "Idempotency-Key";

bool isVisible(char c) { return c > ' ' && c <= '~'; }

std::optional<std::string> unquoted(const std::string& field) {
  std::string text;
  for (std::size_t i = 1; i < field.size(); ++i) {
    if (field[i] == '"') return i + 1 == field.size() ? std::optional(text) : std::nullopt;
    if (field[i] == '\\') {
      if (++i == field.size() || (field[i] != '"' && field[i] != '\\')) return std::nullopt;
    } else if (!isVisible(field[i]) && field[i] != ' ') {
      return std::nullopt;
    }
    text.push_back(field[i]);
  }
  return std::nullopt;
}

std::optional<std::string> textOf(const std::string& field) {
  std::optional<std::string> text;
  if (field.starts_with('"')) {
    text = unquoted(field);
  } else if (std::ranges::all_of(field, isVisible) && field.find_first_of("\",") == std::string::npos) {
    text = field;
  }
  if (text && (text->empty() || text->size() > maxIdempotencyKeyBytes)) text.reset();
  return text;
}

class Sha256 {
 public:
  /// With its length, so that two parts cannot be read as two others.
  Sha256& add(const std::string& part) {
    hash_.update(std::to_string(part.size()) + ":");
    hash_.update(part);
    return *this;
  }
  std::string hex() { return Poco::DigestEngine::digestToHex(hash_.digest()); }

 private:
  Poco::SHA2Engine hash_{Poco::SHA2Engine::SHA_256};
};

}  // namespace

IdempotencyKey IdempotencyKey::in(const Poco::Net::HTTPServerRequest& request) {
  IdempotencyKey key;
  for (const auto& [name, value] : request) {
    if (Poco::icompare(name, fieldName) != 0) continue;
    // A second one leaves it open which of them is meant.
    key.text = key.present ? std::nullopt : textOf(value);
    if (key.present) return key;
    key.present = true;
  }
  return key;
}

std::string fingerprintOf(const Poco::Net::HTTPServerRequest& request, const std::string& body) {
  return Sha256().add(request.getMethod()).add(request.getURI()).add(body).hex();
}

std::string digestOf(const std::string& client, const std::string& host, const std::string& idempotencyKey) {
  Sha256 hash;
  hash.add(client).add(idempotencyKey);
  if (!host.empty()) hash.add(host);
  return hash.hex();
}

}  // namespace lockkeeper::poco
