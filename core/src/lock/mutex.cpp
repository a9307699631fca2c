#include "lockkeeper/mutex.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "lock/store_errors.h"
#include "lockkeeper/base/key.h"

namespace lockkeeper {

Mutex::Mutex(LockManager& manager, std::string key, LockOptions options)
    : manager_(manager.share()), key_(std::move(key)), options_(std::move(options)) {
  checkKey(key_);
}

void Mutex::lock() { keep(manager_.lock(key_, waitingFor(forever))); }

bool Mutex::try_lock() { return tryLockFor(std::chrono::milliseconds::zero()); }

bool Mutex::tryLockFor(std::chrono::milliseconds length) {
  auto held = manager_.tryLock(key_, waitingFor(length));
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
  const std::lock_guard guard(mutex_);
  held_.push_back({std::this_thread::get_id(), std::move(held)});
}

// Under the mutex.
std::list<Mutex::Held>::const_iterator Mutex::toUnlock(Whose whose) const {
  const auto own = std::find_if(held_.rbegin(), held_.rend(),
                                [](const Held& each) { return each.by == std::this_thread::get_id(); });
  if (own != held_.rend()) return std::prev(own.base());
  return whose == Whose::anybodys ? held_.begin() : held_.end();
}

// In a forked child, the mutex may be held for ever by a thread that is not there.
void Mutex::unlock(Whose whose) noexcept {
  if (forkGuard_.inherited()) return;
  std::list<Held> ended;
  std::unique_lock guard(mutex_);
  if (const auto found = toUnlock(whose); found != held_.end()) ended.splice(ended.end(), held_, found);
  guard.unlock();  // The end of the Lock is I/O.
}

std::stop_token Mutex::lost(Whose whose) const {
  if (forkGuard_.inherited()) return {};
  const std::lock_guard guard(mutex_);
  const auto found = toUnlock(whose);
  return found == held_.end() ? std::stop_token() : found->lock.lost();
}

struct ReentrantLock::State {
  /// A call that asks the store for the first level, while others wait for what comes of it.
  struct Attempt {
    std::exception_ptr outage;  // The store could not be reached for ManagerOptions::longestOutage.
  };

  std::mutex mutex;  // of all that follows
  std::condition_variable ended;
  std::shared_ptr<Attempt> attempt;  // null: none is under way
  std::size_t levels = 0;
  Lock held;
};

ReentrantLock::ReentrantLock(LockManager& manager, std::string key, LockOptions options)
    : manager_(manager.share()),
      key_(std::move(key)),
      options_(std::move(options)),
      state_(std::make_unique<State>()) {
  checkKey(key_);
  checkOptions(options_, manager_.defaults());
}

// In a forked child, the mutex and the condition may be in use for ever by threads that are not there.
ReentrantLock::~ReentrantLock() {
  if (forkGuard_.inherited()) static_cast<void>(state_.release());
}

// `take` gets the options of this call and returns the lock, or nothing.
template <class Take>
bool ReentrantLock::enter(std::chrono::milliseconds unnamedWait, Take&& take) {
  forkGuard_.check();
  Clock& clock = *manager_.environment().clock;
  LockOptions options = options_;
  if (!options.waitFor) options.waitFor = manager_.defaults().waitFor.value_or(unnamedWait);
  const Instant until =
      *options.waitFor == forever ? Instant::max() : saturatingAdd(clock.now(), *options.waitFor);

  std::unique_lock guard(state_->mutex);
  while (const auto ahead = state_->attempt) {
    if (clock.now() >= until) return false;
    clock.wait(guard, state_->ended, until);
    // One outage, one bound: who has no other bound need not find out for itself.
    if (ahead->outage && until == Instant::max()) std::rethrow_exception(ahead->outage);
  }
  if (state_->levels > 0) {
    if (!state_->held.valid()) {
      throw LockLost("the lock " + quoted(key_) +
                     " is lost: unlock all its levels before it is locked again");
    }
    ++state_->levels;
    return true;
  }
  if (until != Instant::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock.now());
    options.waitFor = std::max(left, left.zero());
  }
  const auto mine = std::make_shared<State::Attempt>();
  state_->attempt = mine;
  guard.unlock();
  const auto end = [&](std::optional<Lock> lock, std::exception_ptr outage = nullptr) {
    guard.lock();
    mine->outage = std::move(outage);
    state_->attempt = nullptr;
    state_->levels = lock ? 1 : 0;
    if (lock) state_->held = std::move(*lock);
    guard.unlock();
    state_->ended.notify_all();
    return lock.has_value();
  };
  try {
    return end(take(options));
  } catch (const Error& error) {
    const bool isOutage = until == Instant::max() && detail::worthRetrying(error.code());
    end(std::nullopt, isOutage ? std::current_exception() : nullptr);
    throw;
  } catch (...) {
    end(std::nullopt);
    throw;
  }
}

void ReentrantLock::lock() {
  const bool entered = enter(forever, [this](const LockOptions& options) {
    return std::optional<Lock>(manager_.lock(key_, options));
  });
  if (!entered) throw LockTimeout("the lock " + quoted(key_) + " was not taken by the caller that is ahead");
}

bool ReentrantLock::try_lock() {
  return enter(std::chrono::milliseconds{0},
               [this](const LockOptions& options) { return manager_.tryLock(key_, options); });
}

void ReentrantLock::unlock() {
  if (forkGuard_.inherited()) return;
  std::unique_lock guard(state_->mutex);
  if (state_->levels == 0) {
    throw std::logic_error("the lock " + quoted(key_) + " was unlocked more often than it was locked");
  }
  if (--state_->levels > 0) return;
  const Lock last = std::exchange(state_->held, Lock());
  guard.unlock();  // the end of the Lock is I/O
}

// In a forked child, the mutex may be held for ever by a thread that is not there.
std::size_t ReentrantLock::levels() const {
  if (forkGuard_.inherited()) return 0;
  const std::lock_guard guard(state_->mutex);
  return state_->levels;
}

bool ReentrantLock::valid() const {
  if (forkGuard_.inherited()) return false;
  const std::lock_guard guard(state_->mutex);
  return state_->held.valid();
}

std::stop_token ReentrantLock::lost() const {
  if (forkGuard_.inherited()) return {};
  const std::lock_guard guard(state_->mutex);
  return state_->held.lost();
}

std::optional<Fence> ReentrantLock::fence() const {
  if (forkGuard_.inherited()) return std::nullopt;
  const std::lock_guard guard(state_->mutex);
  return state_->held.fence();
}

}  // namespace lockkeeper
