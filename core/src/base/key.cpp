#include "lockkeeper/base/key.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "lockkeeper/error.h"

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

void checkName(std::string_view what, std::string_view name, std::string_view also) {
  const bool allowed = std::ranges::all_of(name, [&](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           also.find(c) != also.npos;
  });
  if (allowed && !name.empty() && name.size() <= 64) return;
  throw std::invalid_argument(std::string(what) + " is " + quoted(name) +
                              ": 1 to 64 characters of [A-Za-z0-9_" + std::string(also) + "] are allowed");
}

void checkNamespace(std::string_view name) {
  if (!name.empty()) checkName("the namespace", name);
}

}  // namespace lockkeeper
