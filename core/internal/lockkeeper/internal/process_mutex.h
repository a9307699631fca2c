#pragma once

#include <mutex>

#include "lockkeeper/base/fork_guard.h"

namespace lockkeeper::detail {

/// A mutex of the process that has made it. In a forked child another thread of the parent may hold it for
/// ever, and what it guards may be half changed.
class ProcessMutex {
 public:
  /// Throws ForkedError in a forked child.
  std::unique_lock<std::mutex> lock() {
    forkGuard_.check();
    return std::unique_lock(mutex_);
  }

  /// True in a forked child.
  bool inherited() const noexcept { return forkGuard_.inherited(); }

 private:
  const ForkGuard forkGuard_;
  std::mutex mutex_;
};

}  // namespace lockkeeper::detail
