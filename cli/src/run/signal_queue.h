#pragma once

#include <signal.h>

#include <optional>

namespace lockkeeper::cli {

/// SIGTERM, SIGINT, SIGHUP and SIGCHLD as a queue to poll instead of handlers. Make it before the first
/// thread, so that all threads leave these signals to it.
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

}  // namespace lockkeeper::cli
