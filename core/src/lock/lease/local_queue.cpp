#include "lock/lease/local_queue.h"

#include <algorithm>
#include <utility>

#include "lock/lease/lease.h"

namespace lockkeeper::detail {

LocalQueue::LocalQueue(std::shared_ptr<Clock> clock)
    : clock_(std::move(clock)), shards_(std::make_unique<Shard[]>(std::size_t{1} << shardBits)) {}

LocalQueue::~LocalQueue() = default;

LocalQueue::Waiter& LocalQueue::Line::takeFirst() {
  Waiter& first = *waiters.front();
  waiters.pop_front();
  if (first.outOfTime) --outOfTime;
  return first;
}

LocalQueue::Turn* LocalQueue::Shard::find(std::string_view key, Hash hash) const {
  return turns.find(hash, [&](const Turn& turn) { return turn.key_ == key; });
}

std::optional<LocalQueue::Answer> LocalQueue::answerAtOnce(std::string_view key, Hash hash, Instant until) {
  Shard& shard = shardOf(hash);
  const std::lock_guard held(shard.mutex);
  const Turn* const first = shard.find(key, hash);
  return first != nullptr && first->answer_ && clock_->now() >= until ? first->answer_ : std::nullopt;
}

// Under the shard's mutex.
void LocalQueue::begin(Shard& shard, Turn& turn) {
  shard.turns.reserve(shard.turns.size() + 1);
  turn.shard_ = &shard;
  shard.turns.add(turn);
}

bool LocalQueue::tryEnter(Lease& lease) {
  Shard& shard = shardOf(lease.turn.keyHash_);
  const std::lock_guard held(shard.mutex);
  if (shard.find(lease.key(), lease.turn.keyHash_) != nullptr) return false;
  begin(shard, lease.turn);
  return true;
}

LocalQueue::Entered LocalQueue::enter(Lease& lease, const Patience& patience, const std::stop_token& stop) {
  Shard& shard = shardOf(lease.turn.keyHash_);
  // While somebody waits, there is a first in line; but the turn moves from lease to lease.
  const auto first = [&] { return shard.find(lease.key(), lease.turn.keyHash_); };
  std::unique_lock held(shard.mutex);
  Turn* const present = first();
  if (present == nullptr) {
    begin(shard, lease.turn);
    return {.turn = true, .atOnce = true};
  }
  if (present->answer_ && clock_->now() >= patience.until) return {.otherwise = *present->answer_};

  if (!present->line_) present->line_ = std::make_unique<Line>();
  Line& line = *present->line_;  // as long as somebody waits in it
  std::list<Waiter*> added(1);
  const auto place = added.begin();
  Waiter waiter{lease, shard.wakers.take()};
  *place = &waiter;
  line.waiters.splice(line.waiters.end(), added);
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
      const Instant outageEnd = endOfOutage(line.unansweredSince, patience.began, patience.longestOutage);
      if (now >= outageEnd) break;
      if (now >= patience.until) {
        if (first()->answer_ || now >= patience.answerBy) break;
        if (!std::exchange(waiter.outOfTime, true)) ++line.outOfTime;
      }
      clock_->wait(held, waiter.waker,
                   std::min(waiter.outOfTime ? patience.answerBy : patience.until, outageEnd));
    }
    if (!waiter.over()) {
      waiter.answer = first()->answer_.value_or(Answer::none);
      if (waiter.outOfTime) --line.outOfTime;
      line.waiters.erase(place);
    }
    shard.wakers.recycle(waiter.waker);
    held.unlock();
  }
  return {.turn = waiter.turn && !waiter.handedOver,
          .handedOver = waiter.handedOver,
          .otherwise = waiter.answer.value_or(Answer::taken)};
}

void LocalQueue::noteStoreWait(Hash hash, Instant now) noexcept {
  Shard& shard = shardOf(hash);
  const std::lock_guard held(shard.mutex);
  shard.storeWaitOf(hash) = {hash, now + storeWaitsKept};
}

bool LocalQueue::hasLatelyWaited(Hash hash, Instant now) const noexcept {
  Shard& shard = shardOf(hash);
  const std::lock_guard held(shard.mutex);
  const StoreWait& last = shard.storeWaitOf(hash);
  return last.hash == hash && now < last.countsUntil;
}

void LocalQueue::Turn::leave() noexcept {
  if (shard_ == nullptr) return;
  Shard& shard = *shard_;
  const std::lock_guard held(shard.mutex);
  if (hasWaiters()) {
    answer_.reset();
    moveToFirst()->notify_one();
    return;
  }
  shard.turns.remove(*this);
  line_.reset();
  answer_.reset();
  shard_ = nullptr;
}

void LocalQueue::Turn::forget() noexcept {
  shard_ = nullptr;
  static_cast<void>(line_.release());  // another thread of the parent may have been changing it
}

// Under the mutex. Returns the condition that the caller has to notify.
std::condition_variable* LocalQueue::Turn::moveToFirst() noexcept {
  Waiter& first = line_->takeFirst();
  moveUnderMutex(first.lease.turn);
  first.turn = true;
  return &first.waker;
}

void LocalQueue::Turn::moveTo(Turn& other) noexcept {
  if (shard_ == nullptr) return;
  const std::lock_guard held(shard_->mutex);
  moveUnderMutex(other);
}

// The chains have room for the one where the other was.
void LocalQueue::Turn::moveUnderMutex(Turn& other) noexcept {
  shard_->turns.remove(*this);
  other.shard_ = std::exchange(shard_, nullptr);
  other.line_ = std::move(line_);
  other.answer_ = std::exchange(answer_, std::nullopt);
  other.shard_->turns.add(other);
}

bool LocalQueue::Turn::isFollowed() const noexcept {
  if (shard_ == nullptr) return false;
  const std::lock_guard held(shard_->mutex);
  return hasWaiters();
}

Instant LocalQueue::Turn::unansweredSince() const noexcept {
  if (shard_ == nullptr) return Instant::max();
  const std::lock_guard held(shard_->mutex);
  return line_ ? line_->unansweredSince : Instant::max();
}

void LocalQueue::Turn::attemptEnded(Answer answer, Instant unansweredSince) noexcept {
  if (shard_ == nullptr) return;
  const std::lock_guard held(shard_->mutex);
  answer_ = answer;
  if (!line_) return;
  if (line_->outOfTime > 0) {
    line_->outOfTime = 0;
    std::erase_if(line_->waiters, [&](Waiter* waiter) {
      if (!waiter->outOfTime) return false;
      waiter->answer = answer;
      waiter->waker.notify_one();
      return true;
    });
  }
  if (std::exchange(line_->unansweredSince, unansweredSince) == unansweredSince) return;
  // The others wait for a store that does not answer as long as they want: they have to look at the clock.
  for (const Waiter* waiter : line_->waiters) waiter->waker.notify_one();
}

void LocalQueue::Turn::attemptBegins() noexcept {
  if (shard_ == nullptr) return;
  const std::lock_guard held(shard_->mutex);
  answer_.reset();
}

}  // namespace lockkeeper::detail
