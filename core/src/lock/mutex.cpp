#include "lockkeeper/mutex.h"

#include <algorithm>

#include "lockkeeper/driver/key.h"

namespace lockkeeper {

namespace {

LockOptions withoutWait(LockOptions options) {
  options.waitFor = std::chrono::milliseconds::zero();
  options.stop = {};
  return options;
}

}  // namespace

Mutex::Mutex(LockManager& manager, std::string key, LockOptions options)
    : manager_(manager), key_(std::move(key)), options_(withoutWait(std::move(options))) {
  checkKey(key_);
}

void Mutex::lock() {
  while (!tryLockFor(longestWait)) {
  }
}

bool Mutex::try_lock() { return tryLockFor(std::chrono::milliseconds::zero()); }

bool Mutex::tryLockFor(std::chrono::milliseconds length) {
  LockOptions options = options_;
  options.waitFor = std::max(length, std::chrono::milliseconds::zero());
  auto held = manager_.tryLock(key_, options);
  if (!held) return false;
  std::unique_lock guard(mutex_);
  // Lost, or this thread could not have taken the key again. Its release is I/O: not under the mutex.
  const auto former = held_.extract(std::this_thread::get_id());
  held_.emplace(std::this_thread::get_id(), std::move(*held));
  guard.unlock();
  return true;
}

void Mutex::unlock() noexcept {
  std::unique_lock guard(mutex_);
  auto held = held_.extract(std::this_thread::get_id());
  guard.unlock();
  if (!held.empty()) held.mapped().release();
}

std::stop_token Mutex::lost() const {
  const std::lock_guard guard(mutex_);
  const auto held = held_.find(std::this_thread::get_id());
  return held == held_.end() ? std::stop_token() : held->second.lost();
}

}  // namespace lockkeeper
