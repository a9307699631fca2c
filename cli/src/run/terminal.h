#pragma once

#include <sys/types.h>

namespace lockkeeper::cli {

/// The terminal on standard input, when this process is in its foreground: handed to the command, which is in
/// a process group of its own, so that it can read and Ctrl-C reaches it.
class Terminal {
 public:
  Terminal();

  bool ours() const { return ours_; }
  /// Do nothing unless ours().
  void handTo(pid_t group) const;
  void takeBack() const;

 private:
  const bool ours_;
};

/// Makes `group` the terminal's foreground. Async-signal-safe: for the child between fork() and exec() as
/// well.
void setForeground(pid_t group);

}  // namespace lockkeeper::cli
