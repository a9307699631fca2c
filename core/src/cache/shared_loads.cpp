#include "cache/shared_loads.h"

#include <utility>

namespace lockkeeper::detail {

SharedLoads::Joined SharedLoads::join(std::string_view key, Order& came) {
  const std::lock_guard held(mutex_);
  if (came == 0) came = ++latest_;
  const auto found = loads_.find(key);
  const Part part = found == loads_.end() ? Part::leads : partOf(*found->second, came);
  if (part != Part::leads) return {found->second, part, found->second->begun == 0 ? came : 0};
  auto load = std::make_shared<Load>();
  loads_.insert_or_assign(std::string(key), load);
  return {std::move(load), part};
}

SharedLoads::Part SharedLoads::partOf(const Load& load, Order came) const {
  if (load.begun == 0 || load.begun > came) return Part::shares;
  if (load.lock == nullptr) return Part::waits;
  return load.lock->valid() ? Part::shares : Part::leads;  // whoever gets the lock now may load, too
}

void SharedLoads::begin(Load& load, const Lock* lock) {
  const std::lock_guard held(mutex_);
  load.begun = ++latest_;
  load.lock = lock;
}

SharedLoads::Order SharedLoads::mark() {
  const std::lock_guard held(mutex_);
  return ++latest_;
}

void SharedLoads::begun(Load& load, Order marked) {
  const std::lock_guard held(mutex_);
  load.begun = marked;
}

void SharedLoads::end(std::string_view key, const std::shared_ptr<Load>& load,
                      std::optional<std::string> value, std::exception_ptr failure) {
  const std::lock_guard held(mutex_);
  load->value = std::move(value);
  load->failure = std::move(failure);
  load->done = true;
  load->ended.notify_all();
  // The key's load may be another one by now.
  const auto found = loads_.find(key);
  if (found != loads_.end() && found->second == load) loads_.erase(found);
}

bool SharedLoads::await(Load& load, Instant until) {
  std::unique_lock held(mutex_);
  while (!load.done && clock_->now() < until) clock_->wait(held, load.ended, until);
  return load.done;
}

}  // namespace lockkeeper::detail
