#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "lockkeeper/error.h"
#include "wait_until.h"

namespace lockkeeper::test {

/// Whether all threads of this process but the caller's sleep.
inline bool othersSleep() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::all_of(begin(threads), end(threads), [](const std::filesystem::directory_entry& thread) {
    if (thread.path().filename() == std::to_string(::gettid())) return true;
    std::string stat;
    std::getline(std::ifstream(thread.path() / "stat"), stat);
    return stat.find(") S ") != std::string::npos;
  });
}

/// Runs `child` in a forked process and returns its result, or 128 + the signal that ended it. Forks while
/// the other threads sleep: one inside malloc would leave its lock to the child, which the address
/// sanitizer's malloc does not mend.
template <class Child>
int inForkedChild(Child child) {
  (void)waitUntil(othersSleep);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(30);
    try {
      ::_exit(child());
    } catch (...) {  // It must not unwind into the tests, which the child would then go on with.
      ::_exit(99);
    }
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

template <class Call>
bool throwsForked(Call call) {
  try {
    call();
  } catch (const ForkedError&) {
    return true;
  }
  return false;
}

}  // namespace lockkeeper::test
