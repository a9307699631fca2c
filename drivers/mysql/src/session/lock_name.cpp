#include "session/lock_name.h"

#include <Poco/SHA2Engine.h>

#include <algorithm>

#include "lockkeeper/base/key.h"

namespace lockkeeper::mysql {
namespace {

constexpr std::size_t longestName = 64;  // MySQL's limit; MariaDB's is 192
constexpr std::size_t hashDigits = 32;
constexpr std::size_t readableBytes = longestName - reservedMark.size() - hashDigits;

bool isPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("_.:/{}-").find(c) != std::string_view::npos;
}

std::string hashOf(std::string_view key) {
  Poco::SHA2Engine engine(Poco::SHA2Engine::SHA_256);
  engine.update(key.data(), key.size());
  return Poco::DigestEngine::digestToHex(engine.digest()).substr(0, hashDigits);
}

}  // namespace

std::string hashedName(std::string_view readable, std::string_view hashed) {
  std::string name(readable.substr(0, readableBytes));
  std::ranges::replace_if(
      name, [](char c) { return !isPlain(c); }, '_');
  return name.append(reservedMark).append(hashOf(hashed));
}

std::string lockName(std::string_view key) {
  const bool fits = !key.empty() && key.size() <= longestName && std::ranges::all_of(key, isPlain);
  // No hashed name can be taken for a key's own one: they alone have the mark.
  if (fits && key.find(reservedMark) == std::string_view::npos) return std::string(key);
  return hashedName(key, key);
}

}  // namespace lockkeeper::mysql
