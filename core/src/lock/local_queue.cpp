#include "lock/local_queue.h"

#include <utility>

#include "lock/lease.h"

namespace lockkeeper::detail {

std::optional<LocalQueue::Entered> LocalQueue::tryEnter(std::string_view key, Instant until) {
  const HashedString hashed(key);
  Shard& shard = shardOf(hashed);
  const std::lock_guard held(shard.mutex);
  return tryEnter(shard, hashed, until);
}

// Under the shard's mutex.
std::optional<LocalQueue::Entered> LocalQueue::tryEnter(Shard& shard, const HashedString& key,
                                                        Instant until) {
  const auto found = shard.lines.find(key);
  if (found == shard.lines.end())
    return Entered{.turn = Turn(shard, *shard.lines.try_emplace(std::string(key.text)).first)};
  if (found->second.answer && clock_->now() >= until) return Entered{.otherwise = *found->second.answer};
  return std::nullopt;
}

LocalQueue::Entered LocalQueue::enter(std::string_view key, Lease& lease, Instant until, Instant answerBy,
                                      const std::stop_token& stop) {
  const HashedString hashed(key);
  Shard& shard = shardOf(hashed);
  std::unique_lock held(shard.mutex);
  if (auto entered = tryEnter(shard, hashed, until)) return std::move(*entered);

  // References to the entry survive a rehash during the wait, iterators do not. A line with waiters is not
  // erased.
  Lines::value_type& entry = *shard.lines.find(hashed);
  Line& line = entry.second;
  Waiter waiter{lease};
  const auto place = line.waiters.insert(line.waiters.end(), &waiter);
  held.unlock();
  {
    // Made and ended outside the mutex, which it takes.
    const std::stop_callback onStop(stop, [&] {
      const std::lock_guard guard(shard.mutex);
      lease.turnCame.notify_one();
    });
    held.lock();
    while (!waiter.turn && !waiter.answer && !stop.stop_requested()) {
      const Instant now = clock_->now();
      if (now >= until) {
        if (line.answer || now >= answerBy) break;
        if (!std::exchange(waiter.outOfTime, true)) ++line.outOfTime;
      }
      clock_->wait(held, lease.turnCame, waiter.outOfTime ? answerBy : until);
    }
    if (!waiter.turn && !waiter.answer) {
      waiter.answer = line.answer.value_or(Answer::none);
      if (waiter.outOfTime) --line.outOfTime;
      line.waiters.erase(place);
    }
    held.unlock();
  }
  if (waiter.handedOver) return {.handedOver = true};
  if (waiter.turn) return {.turn = Turn(shard, entry)};
  return {.otherwise = *waiter.answer};
}

bool LocalQueue::Turn::isFollowed() const noexcept {
  if (shard_ == nullptr) return false;
  const std::lock_guard held(shard_->mutex);
  return !line_->second.waiters.empty();
}

void LocalQueue::Turn::set(std::optional<Answer> answer) noexcept {
  if (shard_ == nullptr) return;
  const std::lock_guard held(shard_->mutex);
  Line& line = line_->second;
  line.answer = answer;
  if (!answer || line.outOfTime == 0) return;
  line.outOfTime = 0;
  std::erase_if(line.waiters, [&](Waiter* waiter) {
    if (!waiter->outOfTime) return false;
    waiter->answer = answer;
    waiter->lease.turnCame.notify_one();
    return true;
  });
}

void LocalQueue::Turn::leave() noexcept {
  const std::lock_guard held(shard_->mutex);
  Line& line = line_->second;
  if (line.waiters.empty()) {
    shard_->lines.erase(shard_->lines.find(line_->first));
    return;
  }
  line.answer.reset();
  Waiter* next = line.waiters.front();
  line.waiters.pop_front();
  if (next->outOfTime) --line.outOfTime;
  next->turn = true;
  next->lease.turnCame.notify_one();
}

}  // namespace lockkeeper::detail
