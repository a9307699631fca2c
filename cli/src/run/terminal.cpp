#include "run/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace lockkeeper::cli {

Terminal::Terminal(pid_t command) : descriptor_(::open("/dev/tty", O_RDWR | O_CLOEXEC)), command_(command) {}

Terminal::~Terminal() {
  takeBack();
  if (exists()) ::close(descriptor_);
}

bool Terminal::hand() {
  asked_ = true;
  return pass(::getpgrp(), command_);
}

void Terminal::handAgain() {
  if (asked_) hand();
}

bool Terminal::takeBack() const {
  return pass(command_, ::getpgrp()) || (exists() && ::tcgetpgrp(descriptor_) == ::getpgrp());
}

bool Terminal::pass(pid_t from, pid_t to) const {
  if (!exists() || ::tcgetpgrp(descriptor_) != from) return false;
  // Who changes the foreground from the background is stopped by SIGTTOU unless it is blocked.
  sigset_t background;
  sigset_t former;
  sigemptyset(&background);
  sigaddset(&background, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &background, &former);
  const bool passed = ::tcsetpgrp(descriptor_, to) == 0;
  ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
  return passed;
}

}  // namespace lockkeeper::cli
