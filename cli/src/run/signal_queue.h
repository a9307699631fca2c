#pragma once

#include <signal.h>
#include <unistd.h>

#include <optional>

namespace lockkeeper::cli {

/// The signals that others send to this process, as a queue to poll instead of handlers. Signals that are
/// ignored (by nohup, say) stay so. Make it before the first thread, so that all threads leave the signals to
/// it.
class SignalQueue {
 public:
  SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;
  ~SignalQueue();

  /// Readable while a signal waits.
  int descriptor() const { return descriptor_; }
  std::optional<int> next();

  /// What was blocked before, for children.
  const sigset_t& formerMask() const { return formerMask_; }

 private:
  int descriptor_;
  sigset_t formerMask_;
};

/// Whether a process that does not handle this signal ends by it.
bool endsByDefault(int signal);

/// Whether it asks a command to end.
bool asksToEnd(int signal);

/// Stops this process until SIGCONT, as `signal` (SIGTSTP, SIGTTIN or SIGTTOU) does by itself, for a
/// SignalQueue that has taken it; with `whom` 0, all of its process group. Returns false where the kernel
/// does not stop it: process 1, and an orphaned process group, above which there is no shell that could
/// continue it. Call on the main thread.
bool stopBy(int signal, pid_t whom = ::getpid());

}  // namespace lockkeeper::cli
