#include "run/terminal.h"

#include <signal.h>
#include <unistd.h>

namespace lockkeeper::cli {

Terminal::Terminal() : ours_(::isatty(STDIN_FILENO) != 0 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp()) {}

void Terminal::handTo(pid_t group) const {
  if (ours_) setForeground(group);
}

void Terminal::takeBack() const { handTo(::getpgrp()); }

void setForeground(pid_t group) {
  // Who changes the foreground from the background is stopped by SIGTTOU unless it is blocked.
  sigset_t background;
  sigset_t former;
  sigemptyset(&background);
  sigaddset(&background, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &background, &former);
  ::tcsetpgrp(STDIN_FILENO, group);
  ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

}  // namespace lockkeeper::cli
