#include "lockkeeper/driver/key.h"

#include <algorithm>
#include <stdexcept>

#include "lockkeeper/internal/hex.h"

namespace lockkeeper {

void checkKey(std::string_view key) {
  if (key.empty()) throw std::invalid_argument("the key is empty: it must have 1 to 512 bytes");
  if (key.size() > maxKeyBytes) {
    throw std::invalid_argument("the key " + quoted(key) + " has " + std::to_string(key.size()) +
                                " bytes: at most 512 are allowed");
  }
  if (key.find(reservedMark) != std::string_view::npos) {
    throw std::invalid_argument("the key " + quoted(key) + " contains the reserved text ':lockkeeper:'");
  }
}

void checkName(std::string_view what, std::string_view name) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  if (!name.empty() && name.size() <= 64 && name.find_first_not_of(allowed) == std::string_view::npos) return;
  throw std::invalid_argument(std::string(what) + " is " + quoted(name) +
                              ": 1 to 64 characters of [A-Za-z0-9_.-] are allowed");
}

void checkNamespace(std::string_view name) {
  if (!name.empty()) checkName("the namespace", name);
}

std::string quoted(std::string_view text) {
  constexpr std::size_t most = 64;
  std::string shown = "'";
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      shown += "\\x";
      appendHex(shown, byte);
    } else {
      shown += c;
    }
  }
  return shown + (text.size() > most ? "…'" : "'");
}

}  // namespace lockkeeper
