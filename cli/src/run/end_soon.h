#pragma once

#include <unistd.h>

#include <chrono>
#include <thread>

namespace lockkeeper::cli {

/// Ends the process in three seconds, unless it has ended by itself before: a store that hangs must not keep
/// a command from stopping.
inline void endSoon(int exitCode) {
  std::thread([exitCode] {
    std::this_thread::sleep_for(std::chrono::seconds{3});
    ::_exit(exitCode);
  }).detach();
}

}  // namespace lockkeeper::cli
