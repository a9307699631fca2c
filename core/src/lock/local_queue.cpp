#include "lock/local_queue.h"

#include <utility>

namespace lockkeeper::detail {

LocalQueue::Entered LocalQueue::enter(std::string_view key, Instant until, Instant answerBy,
                                      const std::stop_token& stop) {
  std::unique_lock held(mutex_);
  const auto found = lines_.find(key);
  if (found == lines_.end()) return {Turn(*this, lines_.try_emplace(std::string(key)).first->first)};
  if (found->second.answer && clock_->now() >= until) return {{}, *found->second.answer};

  // References to the entry survive a rehash during the wait, iterators do not. A line with waiters is not
  // erased.
  const std::string& name = found->first;
  Line& line = found->second;
  Waiter waiter;
  const auto place = line.waiters.insert(line.waiters.end(), &waiter);
  held.unlock();
  {
    // Made and ended outside the mutex, which it takes.
    const std::stop_callback onStop(stop, [&] {
      const std::lock_guard guard(mutex_);
      waiter.wakeUp.notify_one();
    });
    held.lock();
    while (!waiter.turn && !waiter.answer && !stop.stop_requested()) {
      const Instant now = clock_->now();
      if (now >= until) {
        if (line.answer || now >= answerBy) break;
        if (!std::exchange(waiter.outOfTime, true)) ++line.outOfTime;
      }
      clock_->wait(held, waiter.wakeUp, waiter.outOfTime ? answerBy : until);
    }
    if (!waiter.turn && !waiter.answer) {
      waiter.answer = line.answer.value_or(Answer::none);
      if (waiter.outOfTime) --line.outOfTime;
      line.waiters.erase(place);
    }
    held.unlock();
  }
  if (waiter.turn) return {Turn(*this, name)};
  return {{}, *waiter.answer};
}

void LocalQueue::tell(std::string_view key, std::optional<Answer> answer) noexcept {
  const std::lock_guard guard(mutex_);
  Line& line = lines_.find(key)->second;
  line.answer = answer;
  if (!answer || line.outOfTime == 0) return;
  line.outOfTime = 0;
  std::erase_if(line.waiters, [&](Waiter* waiter) {
    if (!waiter->outOfTime) return false;
    waiter->answer = answer;
    waiter->wakeUp.notify_one();
    return true;
  });
}

void LocalQueue::leave(std::string_view key) noexcept {
  const std::lock_guard held(mutex_);
  const auto line = lines_.find(key);
  auto& waiters = line->second.waiters;
  if (waiters.empty()) {
    lines_.erase(line);
    return;
  }
  line->second.answer.reset();
  Waiter* next = waiters.front();
  waiters.pop_front();
  if (next->outOfTime) --line->second.outOfTime;
  next->turn = true;
  next->wakeUp.notify_one();
}

}  // namespace lockkeeper::detail
