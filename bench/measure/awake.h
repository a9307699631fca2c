#pragma once

#include <sys/types.h>

#include <vector>

namespace lockkeeper::bench {

/// Keeps the processors from falling asleep as long as it lives: on each, a child process of the lowest
/// priority computes. What an idle processor of a virtual machine spends on falling asleep and waking up is
/// counted for who waits and who wakes, and was four times what a lock costs.
class Awake {
 public:
  /// Throws std::system_error.
  Awake();
  Awake(const Awake&) = delete;
  Awake& operator=(const Awake&) = delete;
  ~Awake();

 private:
  std::vector<pid_t> children_{};
};

}  // namespace lockkeeper::bench
