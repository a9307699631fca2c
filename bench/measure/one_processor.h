#pragma once

#include <sched.h>
#include <sys/types.h>

#include <map>

namespace lockkeeper::bench {

/// Keeps this process, and all that it has started, on one processor as long as it lives. Who wakes somebody
/// up on another processor of a virtual machine interrupts it through the host, which took each side 50 µs
/// of processor time, four times what a lock costs; and where the scheduler puts a client and its server
/// depends on what else the machine does.
class OneProcessor {
 public:
  /// Throws std::system_error.
  OneProcessor();
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;
  ~OneProcessor();

 private:
  std::map<pid_t, cpu_set_t> before_{};  // by threads
  cpu_set_t own_{};
};

}  // namespace lockkeeper::bench
