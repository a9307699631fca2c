#include "awake.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace lockkeeper::bench {

namespace {

// In a child of a process that may have threads: nothing but system calls.
[[noreturn]] void compute(pid_t parent, unsigned processor) {
  const sched_param none{};
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent ||
      ::sched_setaffinity(0, sizeof only, &only) != 0 || ::sched_setscheduler(0, SCHED_IDLE, &none) != 0) {
    ::_exit(1);
  }
  for (volatile bool computes = true; computes;) {
  }
  ::_exit(0);
}

}  // namespace

Awake::Awake() {
  const pid_t parent = ::getpid();
  cpu_set_t processors;
  if (::sched_getaffinity(0, sizeof processors, &processors) != 0)
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  for (unsigned processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &processors)) continue;
    const pid_t child = ::fork();
    if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (child == 0) compute(parent, processor);
    children_.push_back(child);
  }
}

Awake::~Awake() {
  for (const pid_t child : children_) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

}  // namespace lockkeeper::bench
