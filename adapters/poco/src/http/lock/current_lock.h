#pragma once

#include "lockkeeper/lock.h"

namespace lockkeeper::poco {

/// While it lives, currentLock() of this thread is `lock`.
class CurrentLock {
 public:
  explicit CurrentLock(Lock& lock) noexcept;
  CurrentLock(const CurrentLock&) = delete;
  CurrentLock& operator=(const CurrentLock&) = delete;
  ~CurrentLock();

 private:
  Lock* const outer_;
};

}  // namespace lockkeeper::poco
