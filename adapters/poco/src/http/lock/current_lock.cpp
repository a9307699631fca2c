#include "http/lock/current_lock.h"

#include <utility>

#include "lockkeeper/error.h"
#include "lockkeeper/poco/request_locks.h"

namespace lockkeeper::poco {

namespace {
thread_local Lock* current = nullptr;
}

CurrentLock::CurrentLock(Lock& lock) noexcept : outer_(std::exchange(current, &lock)) {}

CurrentLock::~CurrentLock() { current = outer_; }

Lock* currentLock() noexcept { return current; }

Lock& requireCurrentLock() {
  if (current == nullptr) throw LockLost("no route has locked a key for this request");
  if (!current->valid()) throw LockLost("the lock " + quoted(current->key()) + " of this request is lost");
  return *current;
}

}  // namespace lockkeeper::poco
