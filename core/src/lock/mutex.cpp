#include "lockkeeper/mutex.h"

#include <algorithm>

#include "lockkeeper/driver/key.h"

namespace lockkeeper {

Mutex::Mutex(LockManager& manager, std::string key, LockOptions options)
    : manager_(manager), key_(std::move(key)), options_(std::move(options)) {
  checkKey(key_);
}

void Mutex::lock() { keep(manager_.lock(key_, waitingFor(forever))); }

bool Mutex::try_lock() { return tryLockFor(std::chrono::milliseconds::zero()); }

bool Mutex::tryLockFor(std::chrono::milliseconds length) {
  auto held = manager_.tryLock(key_, waitingFor(std::max(length, std::chrono::milliseconds::zero())));
  if (!held) return false;
  keep(std::move(*held));
  return true;
}

LockOptions Mutex::waitingFor(std::chrono::milliseconds length) const {
  LockOptions options = options_;
  options.waitFor = length;
  options.stop = {};
  return options;
}

void Mutex::keep(Lock held) {
  std::unique_lock guard(mutex_);
  // Lost, or this thread could not have taken the key again. Its end is I/O: not under the mutex.
  const auto former = held_.extract(std::this_thread::get_id());
  held_.emplace(std::this_thread::get_id(), std::move(held));
  guard.unlock();
}

// In a forked child, the mutex may be held for ever by a thread that is not there.
void Mutex::unlock() noexcept {
  if (forkGuard_.inherited()) return;
  std::unique_lock guard(mutex_);
  const auto held = held_.extract(std::this_thread::get_id());
  guard.unlock();  // The end of the Lock is I/O.
}

std::stop_token Mutex::lost() const {
  if (forkGuard_.inherited()) return {};
  const std::lock_guard guard(mutex_);
  const auto held = held_.find(std::this_thread::get_id());
  return held == held_.end() ? std::stop_token() : held->second.lost();
}

}  // namespace lockkeeper
