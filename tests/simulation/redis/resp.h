#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include "simulation/redis/reply.h"

namespace lockkeeper::simulation {

/// Takes the first whole command out of `bytes`; false when there is none yet.
inline bool takeCommand(std::string_view& bytes, Words& words) {
  std::string_view rest = bytes;
  const auto takeNumber = [&rest](char mark, std::size_t& value) {
    const std::size_t end = rest.find("\r\n");
    if (end == std::string_view::npos || rest[0] != mark) return false;
    std::from_chars(rest.data() + 1, rest.data() + end, value);
    rest.remove_prefix(end + 2);
    return true;
  };
  std::size_t count = 0;
  if (!takeNumber('*', count)) return false;
  words.resize(count);
  for (std::string& word : words) {
    std::size_t length = 0;
    if (!takeNumber('$', length) || rest.size() < length + 2) return false;
    word.assign(rest.substr(0, length));
    rest.remove_prefix(length + 2);
  }
  bytes = rest;
  return true;
}

}  // namespace lockkeeper::simulation
