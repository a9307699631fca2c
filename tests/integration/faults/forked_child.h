#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "lockkeeper/error.h"

namespace lockkeeper::test {

/// Runs `child` in a forked process and returns its result, or 128 + the signal that ended it.
template <class Child>
int inForkedChild(Child child) {
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
