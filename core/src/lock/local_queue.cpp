#include "lock/local_queue.h"

namespace lockkeeper::detail {

std::optional<LocalQueue::Turn> LocalQueue::enter(std::string_view key, Instant until,
                                                  const std::stop_token& stop) {
  std::unique_lock held(mutex_);
  const auto found = lines_.find(key);
  if (found == lines_.end()) return Turn(*this, lines_.try_emplace(std::string(key)).first->first);
  if (clock_->now() >= until) return std::nullopt;

  // References to the entry survive a rehash during the wait, iterators do not. A line with waiters is not
  // erased.
  const std::string& name = found->first;
  auto& waiters = found->second.waiters;
  Waiter waiter;
  const auto place = waiters.insert(waiters.end(), &waiter);
  held.unlock();
  {
    // Made and ended outside the mutex, which it takes.
    const std::stop_callback onStop(stop, [&] {
      const std::lock_guard guard(mutex_);
      waiter.wakeUp.notify_one();
    });
    held.lock();
    while (!waiter.turn && !stop.stop_requested() && clock_->now() < until) {
      clock_->wait(held, waiter.wakeUp, until);
    }
    if (!waiter.turn) waiters.erase(place);
    held.unlock();
  }
  return waiter.turn ? std::optional(Turn(*this, name)) : std::nullopt;
}

bool LocalQueue::isBeingClaimed(std::string_view key) const {
  const std::lock_guard guard(mutex_);
  const auto line = lines_.find(key);
  return line != lines_.end() && !line->second.held;
}

void LocalQueue::markHeld(std::string_view key) noexcept {
  const std::lock_guard guard(mutex_);
  lines_.find(key)->second.held = true;
}

void LocalQueue::leave(std::string_view key) noexcept {
  const std::lock_guard held(mutex_);
  const auto line = lines_.find(key);
  auto& waiters = line->second.waiters;
  if (waiters.empty()) {
    lines_.erase(line);
    return;
  }
  line->second.held = false;
  Waiter* next = waiters.front();
  waiters.pop_front();
  next->turn = true;
  next->wakeUp.notify_one();
}

}  // namespace lockkeeper::detail
