#pragma once

#include <sys/types.h>

namespace lockkeeper::cli {

/// The controlling terminal, if there is one. The command, which is in a process group of its own, gets it
/// when it asks. Until then it stays with our group, where others may use it: `lockkeeper run … | less`.
class Terminal {
 public:
  explicit Terminal(pid_t command);
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  /// Takes it back.
  ~Terminal();

  bool exists() const { return descriptor_ >= 0; }
  /// The command asks for it. Returns whether it has got it: only our group in the foreground hands it over.
  bool hand();
  /// The same for a command that has asked before.
  void handAgain();
  /// Does nothing unless the command has it. Returns whether our group is in the foreground now.
  bool takeBack() const;

 private:
  bool pass(pid_t from, pid_t to) const;

  const int descriptor_;
  const pid_t command_;
  bool asked_ = false;
};

}  // namespace lockkeeper::cli
