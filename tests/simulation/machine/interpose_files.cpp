// What the C library tells of the computer, for the threads of a simulation.
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "simulation/machine/real_calls.h"
#include "simulation/machine/scheduler.h"

using lockkeeper::simulation::Scheduler;

extern "C" {

// Each simulated process has a boot clock of its own, as in a time namespace.
ssize_t readlink(const char* path, char* out, size_t length) noexcept {
  LOCKKEEPER_REAL(readlink);
  const Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler || strcmp(path, "/proc/self/ns/time") != 0) return real(path, out, length);
  const std::string space = "time:[" + std::to_string(scheduler->thisProcess()) + "]";
  return static_cast<ssize_t>(space.copy(out, std::min(length, space.size())));
}

}  // extern "C"
