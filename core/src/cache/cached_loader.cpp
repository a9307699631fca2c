#include "lockkeeper/cached_loader.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

#include "cache/cached_values.h"
#include "cache/shared_loads.h"
#include "lock/lease/options.h"
#include "lock/store_errors.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/check_range.h"

namespace lockkeeper {

namespace {

using std::chrono::milliseconds;

LockOptions lockOptions(const CacheOptions& cache) {
  LockOptions lock;
  lock.ttl = cache.lockTtl;
  lock.waitFor = cache.waitFor;
  lock.renew = Renew::automatic;
  lock.maxHold = cache.loadFor;
  lock.safetyMargin = cache.lockTtl / 10;
  return lock;
}

CacheOptions checked(CacheOptions options) {
  constexpr milliseconds month = std::chrono::hours{24 * 30};
  checkNamespace(options.keyNamespace);
  checkDuration("freshFor", options.freshFor, milliseconds{1}, month);
  checkDuration("staleFor", options.staleFor, milliseconds{0}, month);
  checkDuration("negativeFor", options.negativeFor, milliseconds{0}, month);
  checkDuration("loadFor", options.loadFor, detail::shortestTtl, std::chrono::hours{1});
  checkDuration("lockTtl", options.lockTtl, detail::shortestTtl, std::chrono::hours{1});
  checkDuration("waitFor", options.waitFor, milliseconds{0}, std::chrono::hours{24});
  checkDuration("operationTimeout", options.operationTimeout, milliseconds{1}, std::chrono::hours{1});
  checkOptions(lockOptions(options));
  checkRange("jitterPercent", options.jitterPercent, 0, 90);
  return options;
}

std::shared_ptr<LockManager> checked(std::shared_ptr<LockManager> locks) {
  if (!locks) throw std::invalid_argument("a CachedLoader needs a LockManager");
  return locks;
}

}  // namespace

class CachedLoader::Impl {
 public:
  using Value = std::optional<std::string>;
  using Entry = detail::CachedValues::Entry;

  Impl(std::shared_ptr<ValueStore> values, std::shared_ptr<LockManager> locks, Loader loader,
       CacheOptions options)
      : locks_(checked(std::move(locks))),
        loader_(std::move(loader)),
        options_(checked(std::move(options))),
        values_(std::move(values), options_, locks_->environment()),
        loads_(locks_->environment().clock) {
    if (!loader_) throw std::invalid_argument("a CachedLoader needs a loader");
  }

  Value get(std::string_view key) {
    refuseInherited();
    const Entry entry = values_.entryOf(key);
    const Instant until = locks_->environment().clock->now() + options_.waitFor;
    for (Loads::Order came = 0;;) {
      auto fresh = values_.readFresh(entry);
      if (fresh.there) return serve(entry, EventKind::cacheHit, std::move(fresh.value));
      const Loads::Joined joined = loads_.join(entry.full, came);
      if (joined.part == Loads::Part::leads) return lead(entry, joined.load, fresh.failure, until);
      if (joined.load->leader == std::this_thread::get_id()) {
        throw std::logic_error("the loader asks for the value of " + quoted(entry.key) +
                               ", which waits for that loader");
      }
      if (Value stale = values_.readStale(entry))
        return serve(entry, EventKind::cacheStale, std::move(stale));
      if (!loads_.await(*joined.load, until)) tooLate(entry);
      if (joined.part == Loads::Part::waits || joined.isTooOld()) continue;
      // The leader had less time than this caller.
      if (joined.load->outOfTime && locks_->environment().clock->now() < until) continue;
      if (joined.load->failure) std::rethrow_exception(joined.load->failure);
      return joined.load->value;
    }
  }

  void invalidate(std::string_view key) {
    refuseInherited();
    const Entry entry = values_.entryOf(key);
    values_.erase(entry);
    // Whoever stores a value does so under the lock: once it is ours, one that was loaded before has been
    // stored, or never will be.
    LockOptions options = lockOptions(options_);
    options.waitFor = options_.loadFor + options_.lockTtl;
    const Lock lock = locks_->lock(entry.full, options);
    values_.erase(entry);
  }

  bool inherited() const noexcept { return process_.inherited(); }

 private:
  using Loads = detail::SharedLoads;

  void refuseInherited() const {
    if (inherited()) {
      throw ForkedError(
          "this CachedLoader was made before fork(): make a new one, with new stores, in the child");
    }
  }

  Value serve(const Entry& entry, EventKind how, Value value) const {
    values_.tell(how, entry);
    return value;
  }

  Value lead(const Entry& entry, const std::shared_ptr<Loads::Load>& load,
             const std::exception_ptr& valuesDown, Instant until) {
    // Released after the load has ended for all: who comes when another process has had the lock must not
    // share it.
    std::optional<Lock> lock;
    try {
      Value value = rebuild(entry, *load, lock, valuesDown, until);
      loads_.end(entry.full, load, value, nullptr);
      return value;
    } catch (...) {
      loads_.end(entry.full, load, {}, std::current_exception());
      throw;
    }
  }

  [[noreturn]] void tooLate(const Entry& entry) const {
    throw LockTimeout("the value of " + quoted(entry.key) + " was not loaded by another caller within " +
                      formatDuration(options_.waitFor));
  }

  Value rebuild(const Entry& entry, Loads::Load& load, std::optional<Lock>& lock,
                const std::exception_ptr& valuesDown, Instant until) {
    if (valuesDown) return loadAlone(entry, load, valuesDown);
    const Loads::Order beforeStale = loads_.mark();
    Value stale = values_.readStale(entry);
    if (stale) loads_.begun(load, beforeStale);
    try {
      LockOptions options = lockOptions(options_);
      const auto left = std::chrono::ceil<milliseconds>(until - locks_->environment().clock->now());
      options.waitFor = stale ? milliseconds{0} : std::max(left, milliseconds{0});
      lock = locks_->tryLock(entry.full, options);
    } catch (const ForkedError&) {
      throw;
    } catch (const Error& error) {  // the manager has told of it
      if (stale) return serve(entry, EventKind::cacheStale, std::move(stale));
      load.outOfTime = detail::worthRetrying(error.code());
      return loadAlone(entry, load, std::current_exception());
    }
    if (!lock && stale) return serve(entry, EventKind::cacheStale, std::move(stale));
    loads_.begin(load, lock ? &*lock : nullptr);
    // Whoever had the lock before may have stored a value.
    auto fresh = values_.readFresh(entry);
    if (fresh.there) return serve(entry, EventKind::cacheHit, std::move(fresh.value));
    if (!lock && locks_->stopped()) throw Cancelled("the load of " + quoted(entry.key) + " was cancelled");
    if (!lock) {
      load.outOfTime = true;
      tooLate(entry);
    }
    return loadLocked(entry, *lock);
  }

  Value loadAlone(const Entry& entry, Loads::Load& load, const std::exception_ptr& failure) {
    if (options_.whenDown == WhenDown::fail) std::rethrow_exception(failure);
    loads_.begin(load, nullptr);
    return loadNow(entry);
  }

  Value loadNow(const Entry& entry) {
    try {
      return serve(entry, EventKind::cacheLoaded, loader_(entry.key));
    } catch (const std::exception& error) {
      values_.tell(EventKind::loadFailed, entry, error.what());
      throw;
    } catch (...) {
      values_.tell(EventKind::loadFailed, entry, "not a std::exception");
      throw;
    }
  }

  Value loadLocked(const Entry& entry, const Lock& lock) {
    Value value;
    const Instant began = locks_->environment().clock->now();
    try {
      value = loadNow(entry);
    } catch (...) {
      // Looked for again: an older one may have been invalidated.
      if (Value stale = values_.readStale(entry))
        return serve(entry, EventKind::cacheStale, std::move(stale));
      throw;
    }
    try {
      values_.store(entry, lock, value, began);
    } catch (const std::exception& error) {
      values_.tell(EventKind::notStored, entry, error.what());
    }
    return value;
  }

  const std::shared_ptr<LockManager> locks_;
  const Loader loader_;
  const CacheOptions options_;
  detail::CachedValues values_;
  Loads loads_;
  const ForkGuard process_;
};

CachedLoader::CachedLoader(std::shared_ptr<ValueStore> values, std::shared_ptr<LockManager> locks,
                           Loader loader, CacheOptions options)
    : impl_(std::make_shared<Impl>(std::move(values), std::move(locks), std::move(loader),
                                   std::move(options))) {}

CachedLoader::CachedLoader(CachedLoader&&) noexcept = default;

CachedLoader& CachedLoader::operator=(CachedLoader&& other) noexcept {
  if (this != &other) {
    const CachedLoader ended(std::move(*this));
    impl_ = std::move(other.impl_);
  }
  return *this;
}

CachedLoader::~CachedLoader() {
  // In a forked child, the mutexes may be held for ever by threads that are not here.
  if (impl_ && impl_->inherited()) new (std::nothrow) auto(impl_);
}

// By value: a callback of the call, such as the loader, may move or destroy the object.
std::shared_ptr<CachedLoader::Impl> CachedLoader::impl() const {
  if (!impl_) throw std::logic_error("this CachedLoader was moved from: it can only be assigned to");
  return impl_;
}

std::optional<std::string> CachedLoader::get(std::string_view key) { return impl()->get(key); }

void CachedLoader::invalidate(std::string_view key) { impl()->invalidate(key); }

}  // namespace lockkeeper
