#include "http/lock/current_lock.h"

#include <utility>

#include "lockkeeper/poco/request_locks.h"

namespace lockkeeper::poco {

namespace {
thread_local Lock* current = nullptr;
}

CurrentLock::CurrentLock(Lock& lock) noexcept : outer_(std::exchange(current, &lock)) {}

CurrentLock::~CurrentLock() { current = outer_; }

Lock* currentLock() noexcept { return current; }

}  // namespace lockkeeper::poco
