#include "limit/rate_combiner.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>

namespace lockkeeper::detail {

namespace {

constexpr std::int64_t mostTogether = 1000;
constexpr int mostYields = 16;

bool sameQuestion(const RateCharge& left, const RateCharge& right) {
  return left.cost == right.cost && *left.law == *right.law && left.longestWait == right.longestWait;
}

// The part of `all`, an outcome of many, that is the index-th one's of `callers`.
RateOutcome shareOf(const RateOutcome& all, std::int64_t index, std::int64_t callers, std::int64_t cost) {
  RateOutcome share = all;
  share.granted = index < all.granted ? 1 : 0;
  if (share.granted == 1) {
    share.retryAfter = std::chrono::microseconds{0};
    share.remaining += (std::min(all.granted, callers) - 1 - index) * cost;
  }
  return share;
}

}  // namespace

/// Callers with one question. Those who wait are woken together, which costs one system call.
struct RateCombiner::Batch {
  enum class State { gathers, ready, led, done };

  RateCharge question;
  std::int64_t callers = 0;  // guarded by the shard, until led

  std::mutex mutex;  // taken after the shard's
  std::condition_variable wakeUp;
  std::atomic<State> state = State::gathers;  // changes under the mutex
  std::exception_ptr failure;

  explicit Batch(const RateCharge& first) : question(first) {}

  bool waits() const { return state == State::gathers || state == State::led; }

  void become(State news) {
    {
      const std::lock_guard guard(mutex);
      state = news;
    }
    news == State::done ? wakeUp.notify_all() : wakeUp.notify_one();
  }
};

void RateCombiner::take(RateCharge& charge, std::int64_t ahead, std::int64_t& spare, Instant deadline) {
  Shard& shard = shards_[std::hash<std::string_view>{}(charge.key) % shards_.size()];
  std::shared_ptr<Batch> batch;
  bool leads = false;
  std::int64_t place = 0;
  {
    const std::lock_guard guard(shard.mutex);
    const auto line = shard.lines.find(charge.key);
    leads = line == shard.lines.end();
    if (leads) {
      shard.lines.try_emplace(std::string(charge.key));
      batch = std::make_shared<Batch>(charge);
    } else {
      auto& waiting = line->second;
      if (waiting.empty() || waiting.back()->callers == mostTogether ||
          !sameQuestion(waiting.back()->question, charge)) {
        waiting.push_back(std::make_shared<Batch>(charge));
      }
      batch = waiting.back();
    }
    place = batch->callers++;
  }
  if (!leads) {
    leads = await(*batch);
    if (leads) {
      yielder_.yieldUntil([] { return false; }, 1);  // to those who were answered just now and ask again
      const std::lock_guard guard(shard.mutex);
      shard.lines.find(charge.key)->second.pop_front();  // nobody joins any more
    }
  }
  if (leads) ask(shard, *batch, ahead, deadline);
  if (batch->failure) std::rethrow_exception(batch->failure);
  const RateOutcome& all = batch->question.outcome;
  charge.outcome = shareOf(all, place, batch->callers, charge.cost);
  if (leads) spare += std::max<std::int64_t>(all.granted - batch->callers, 0);
}

// True: the caller is to ask for all. False: somebody has. There is no deadline: whoever asks has one that is
// earlier than that of those who came later.
bool RateCombiner::await(Batch& batch) {
  yielder_.yieldUntil([&] { return !batch.waits(); }, mostYields);
  if (batch.state == Batch::State::done) return false;
  std::unique_lock held(batch.mutex);
  while (batch.waits()) clock_->wait(held, batch.wakeUp, Instant::max());
  if (batch.state == Batch::State::done) return false;
  batch.state = Batch::State::led;
  return true;
}

void RateCombiner::ask(Shard& shard, Batch& batch, std::int64_t ahead, Instant deadline) {
  batch.question.times = batch.callers + ahead;
  try {
    driver_.take({&batch.question, 1}, deadline);
  } catch (...) {
    batch.failure = std::current_exception();
  }
  passOn(shard, batch.question.key);
  if (batch.callers > 1) batch.become(Batch::State::done);
}

void RateCombiner::passOn(Shard& shard, std::string_view key) {
  const std::lock_guard guard(shard.mutex);
  const auto line = shard.lines.find(key);
  if (line->second.empty()) {
    shard.lines.erase(line);
  } else {
    line->second.front()->become(Batch::State::ready);
  }
}

}  // namespace lockkeeper::detail
