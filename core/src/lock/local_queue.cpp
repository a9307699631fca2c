#include "lock/local_queue.h"

#include <utility>

#include "lock/lease.h"

namespace lockkeeper::detail {

LocalQueue::Waiter& LocalQueue::Line::takeFirst() {
  Waiter& first = *waiters.front();
  waiters.pop_front();
  if (first.outOfTime) --outOfTime;
  return first;
}

LocalQueue::Line* LocalQueue::Shard::find(std::string_view key, std::size_t hash) const {
  return lines.find(hash, [&](const Line& line) { return line.key == key; });
}

std::optional<LocalQueue::Answer> LocalQueue::answerAtOnce(std::string_view key, std::size_t hash,
                                                           Instant until) {
  Shard& shard = shardOf(hash);
  const std::lock_guard held(shard.mutex);
  const Line* const line = shard.find(key, hash);
  return line != nullptr && line->answer && clock_->now() >= until ? line->answer : std::nullopt;
}

// Under the shard's mutex.
void LocalQueue::beginLine(Shard& shard, Lease& lease, std::size_t hash) {
  shard.lines.reserve(shard.lines.size() + 1);
  lease.turn.shard_ = &shard;
  lease.turn.line_.key = lease.key;
  lease.turn.line_.keyHash = hash;
  shard.lines.add(lease.turn.line_);
}

bool LocalQueue::tryEnter(Lease& lease, std::size_t hash) {
  Shard& shard = shardOf(hash);
  const std::lock_guard held(shard.mutex);
  if (shard.find(lease.key, hash) != nullptr) return false;
  beginLine(shard, lease, hash);
  return true;
}

LocalQueue::Entered LocalQueue::enter(Lease& lease, std::size_t hash, Instant until, Instant answerBy,
                                      const std::stop_token& stop) {
  Shard& shard = shardOf(hash);
  std::unique_lock held(shard.mutex);
  // While somebody waits, there is a line; but it moves from lease to lease.
  Line* line = shard.find(lease.key, hash);
  if (line == nullptr) {
    beginLine(shard, lease, hash);
    return {.turn = true};
  }
  if (line->answer && clock_->now() >= until) return {.otherwise = *line->answer};

  std::list<Waiter*> added(1);
  const auto place = added.begin();
  Waiter waiter{lease, shard.wakers.take()};
  *place = &waiter;
  line->waiters.splice(line->waiters.end(), added);
  held.unlock();
  {
    // Made and ended outside the mutex, which it takes.
    const std::stop_callback onStop(stop, [&] {
      const std::lock_guard guard(shard.mutex);
      waiter.waker.notify_one();
    });
    held.lock();
    while (!waiter.over() && !stop.stop_requested()) {
      const Instant now = clock_->now();
      if (now >= until) {
        line = shard.find(lease.key, hash);
        if (line->answer || now >= answerBy) break;
        if (!std::exchange(waiter.outOfTime, true)) ++line->outOfTime;
      }
      clock_->wait(held, waiter.waker, waiter.outOfTime ? answerBy : until);
    }
    if (!waiter.over()) {
      line = shard.find(lease.key, hash);
      waiter.answer = line->answer.value_or(Answer::none);
      if (waiter.outOfTime) --line->outOfTime;
      line->waiters.erase(place);
    }
    shard.wakers.giveBack(waiter.waker);
    held.unlock();
  }
  return {.turn = waiter.turn && !waiter.handedOver,
          .handedOver = waiter.handedOver,
          .otherwise = waiter.answer.value_or(Answer::taken)};
}

void LocalQueue::Turn::leave() noexcept {
  if (shard_ == nullptr) return;
  Shard& shard = *shard_;
  const std::lock_guard held(shard.mutex);
  if (!line_.waiters.empty()) {
    line_.answer.reset();
    moveToFirst()->notify_one();
    return;
  }
  shard.lines.remove(line_);
  line_ = {};
  shard_ = nullptr;
}

// Under the mutex. Returns what is to be notified.
std::condition_variable* LocalQueue::Turn::moveToFirst() noexcept {
  Waiter& first = line_.takeFirst();
  moveUnderMutex(first.lease.turn, first.lease.key);
  first.turn = true;
  return &first.waker;
}

void LocalQueue::Turn::moveTo(Turn& other, std::string_view key) noexcept {
  if (shard_ == nullptr) return;
  const std::lock_guard held(shard_->mutex);
  moveUnderMutex(other, key);
}

// The chains have room for the one where the other was.
void LocalQueue::Turn::moveUnderMutex(Turn& other, std::string_view key) noexcept {
  shard_->lines.remove(line_);
  other.line_ = std::exchange(line_, {});
  other.line_.key = key;
  other.shard_ = std::exchange(shard_, nullptr);
  other.shard_->lines.add(other.line_);
}

bool LocalQueue::Turn::isFollowed() const noexcept {
  if (shard_ == nullptr) return false;
  const std::lock_guard held(shard_->mutex);
  return !line_.waiters.empty();
}

void LocalQueue::Turn::set(std::optional<Answer> answer) noexcept {
  if (shard_ == nullptr) return;
  const std::lock_guard held(shard_->mutex);
  line_.answer = answer;
  if (!answer || line_.outOfTime == 0) return;
  line_.outOfTime = 0;
  std::erase_if(line_.waiters, [&](Waiter* waiter) {
    if (!waiter->outOfTime) return false;
    waiter->answer = answer;
    waiter->waker.notify_one();
    return true;
  });
}

}  // namespace lockkeeper::detail
