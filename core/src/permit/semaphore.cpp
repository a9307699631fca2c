#include "lockkeeper/permit/semaphore.h"

#include <utility>

#include "lockkeeper/base/key.h"

namespace lockkeeper {

Semaphore::Semaphore(LockManager& manager, std::string key, std::uint32_t permits, LockOptions options)
    : manager_(manager.share()), key_(std::move(key)), options_(std::move(options)), permits_(permits) {
  checkKey(key_);
  checkOptions(asking(1), manager_.defaults());
  manager_.requireShares();
}

std::optional<Lock> Semaphore::tryAcquire(std::uint32_t count, std::chrono::milliseconds waitFor) {
  LockOptions options = asking(count);
  options.waitFor = waitFor;
  return manager_.tryLock(key_, options);
}

Lock Semaphore::acquire(std::uint32_t count) { return manager_.lock(key_, asking(count)); }

void Semaphore::resize(std::uint32_t permits) {
  manager_.resizeShares(key_, permits);
  permits_ = permits;
}

std::vector<Holder> Semaphore::holders() { return manager_.shareHolders(key_); }

LockOptions Semaphore::asking(std::uint32_t count) const {
  LockOptions options = options_;
  options.share = Share{.weight = count, .limit = permits_};
  return options;
}

}  // namespace lockkeeper
