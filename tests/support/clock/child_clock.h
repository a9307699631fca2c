#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "temp_folder.h"

namespace lockkeeper::test {

/// The wall clock of child processes, which a test sets while they run; at first it is right. For programs
/// without sanitizers, because it is preloaded. One thread at a time.
class ChildClock {
 public:
  ChildClock() {
    writeFile(folder_ / "offset", std::string(sizeof(std::int64_t), '\0'));
    // A server may run as a user of its own.
    for (const auto& each : {folder_.path(), folder_ / "offset"})
      std::filesystem::permissions(each, std::filesystem::perms{0755});
  }

  /// What the children must find in their environment.
  std::map<std::string, std::string> environment() const {
    return {{"LD_PRELOAD", WALL_CLOCK_SHIM}, {"WALL_CLOCK_FILE", folder_ / "offset"}};
  }

  /// From now on it is so many seconds ahead of the machine's.
  void jump(std::int64_t seconds) const {
    std::string bytes(sizeof seconds, '\0');
    std::memcpy(bytes.data(), &seconds, sizeof seconds);
    // In place, since the children have mapped the file.
    std::ofstream(folder_ / "offset", std::ios::in | std::ios::out | std::ios::binary) << bytes;
  }

 private:
  TempFolder folder_;
};

}  // namespace lockkeeper::test
