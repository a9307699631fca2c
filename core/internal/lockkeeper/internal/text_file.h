#pragma once

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <system_error>

#include "lockkeeper/error.h"

namespace lockkeeper {

/// What a file that a user has named contains, for settings, passwords and the like. Throws ConfigError, with
/// the path and the reason, for what cannot be read to its end, such as a directory, and for more than `most`
/// bytes. Blocks for the file system.
inline std::string textOfFile(const std::string& path, std::size_t most) {
  const auto refuse = [&](const std::string& why) -> void {
    throw ConfigError("the file " + quoted(path) + " cannot be read: " + why);
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (!file) refuse(std::generic_category().message(errno));
  std::string text;
  char part[4096];
  while (const std::size_t count = std::fread(part, 1, sizeof part, file.get())) {
    text.append(part, count);
    if (text.size() > most) refuse("it has more than " + std::to_string(most) + " bytes");
  }
  if (std::ferror(file.get()) != 0) refuse(std::generic_category().message(errno));
  return text;
}

}  // namespace lockkeeper
