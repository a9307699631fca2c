#include "limit/rate_records.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <new>
#include <utility>

#include "lockkeeper/error.h"

namespace lockkeeper::detail {

namespace {

using std::chrono::ceil;
using std::chrono::microseconds;

constexpr std::int64_t mostCallers = 1000;

// The part of `all`, an outcome of many callers, that is the index-th one's.
RateOutcome shareOf(const RateOutcome& all, std::int64_t index, std::int64_t cost) {
  RateOutcome share = all;
  share.granted = index < all.granted ? 1 : 0;
  if (share.granted == 1) {
    share.retryAfter = microseconds{0};
    share.remaining += (all.granted - 1 - index) * cost;
  }
  return share;
}

// All callers of a question fail together, and each is told by an exception of its own: what one thread does
// with its exception does not touch those of others.
[[noreturn]] void throwCopyOf(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const ForkedError&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.code(), error.what());
  }
}

}  // namespace

/// Callers with one question. Those who sleep are woken together, which costs one system call; on a mutex of
/// their own, so that they do not keep others from joining the next batch.
struct RateRecords::Batch {
  enum class State { gathers, ready, led, answered };

  const RateLaw law;
  const std::int64_t cost;
  // When somebody asks, though an earlier question is still under way: so nobody loses more than half of its
  // time by waiting in line.
  const Instant askAt;
  std::int64_t callers = 1;  // guarded by the shard, until it is led

  std::mutex mutex;  // taken after the shard's
  std::condition_variable wakeUp;
  State state = State::gathers;
  RateOutcome outcome;         // of all, once it is answered
  std::exception_ptr failure;  // instead

  Batch(const RateCharge& first, Instant latestStart)
      : law(*first.law), cost(first.cost), askAt(latestStart) {}

  // The previous question is answered.
  void makeReady() {
    {
      const std::lock_guard guard(mutex);
      if (state != State::gathers) return;
      state = State::ready;
    }
    wakeUp.notify_one();
  }

  void answer(const RateOutcome& all, const std::exception_ptr& error) {
    {
      const std::lock_guard guard(mutex);
      outcome = all;
      failure = error;
      state = State::answered;
    }
    if (callers > 1) wakeUp.notify_all();
  }

  bool takes(const RateCharge& charge) const {
    return callers < mostCallers && cost == charge.cost && law == *charge.law;
  }
};

RateRecords::Record* RateRecords::Shard::find(const HashedString& key) {
  if (last == nullptr || last->first != key.text) {
    const auto found = records.find(key);
    if (found == records.end()) return nullptr;
    last = &*found;
  }
  return &last->second;
}

RateRecords::Record& RateRecords::Shard::recordOf(const HashedString& key) {
  Record* const found = find(key);
  return found != nullptr ? *found : records.try_emplace(std::string(key.text)).first->second;
}

void RateRecords::Shard::dropIfEmpty(const HashedString& key) {
  const auto found = records.find(key);
  if (found == records.end() || found->second.inUse() || !found->second.refusals.empty()) return;
  drop(found);
}

void RateRecords::Shard::drop(StringMap<Record>::iterator place) {
  if (last == &*place) last = nullptr;
  records.erase(place);
}

// Drops the refusals that have ended and, if that is not enough, those of the key that may be allowed first.
void RateRecords::Shard::makeRoom(const Record& present, Instant now) {
  if (records.size() <= recordsInShard) return;
  auto first = records.end();
  Instant firstEnd = Instant::max();
  for (auto each = records.begin(); each != records.end();) {
    const auto current = each++;
    const Record& record = current->second;
    if (&record == &present || record.inUse()) continue;
    Instant end = Instant::min();
    for (const Refusal& refusal : record.refusals) end = std::max(end, refusal.certainUntil);
    if (end <= now) {
      refusals -= static_cast<int>(record.refusals.size());
      drop(current);
    } else if (end < firstEnd) {
      first = current;
      firstEnd = end;
    }
  }
  if (records.size() <= recordsInShard || first == records.end()) return;
  refusals -= static_cast<int>(first->second.refusals.size());
  drop(first);
}

bool RateRecords::isRefused(RateCharge& charge, Instant now) {
  const HashedString key(charge.key);
  Shard& shard = shardOf(key);
  if (shard.refusals.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard guard(shard.mutex);
  const Record* const record = shard.find(key);
  if (record == nullptr) return false;
  for (const Refusal& each : record->refusals) {
    if (each.certainUntil <= now || each.cost != charge.cost || each.law != *charge.law) continue;
    charge.outcome = {.remaining = each.remaining,
                      .retryAfter = ceil<microseconds>(each.retryAt - now),
                      .resetAfter = ceil<microseconds>(each.resetAt - now)};
    return true;
  }
  return false;
}

void RateRecords::ask(RateCharge& charge, Instant deadline) {
  const HashedString key(charge.key);
  Shard& shard = shardOf(key);
  std::unique_lock held(shard.mutex);
  Record& record = shard.recordOf(key);
  std::shared_ptr<Batch> batch;
  std::int64_t place = 0;
  if (record.underWay > 0 || !record.line.empty()) {
    batch = join(record, charge, deadline);
    place = batch->callers - 1;
    held.unlock();
    if (!waitToLead(*batch, deadline)) {
      if (batch->failure) throwCopyOf(batch->failure);
      charge.outcome = shareOf(batch->outcome, place, charge.cost);
      return;
    }
    held.lock();
    std::erase(record.line, batch);  // nobody joins any more
  }
  ++record.underWay;
  held.unlock();

  RateCharge question = charge;
  const std::int64_t callers = batch ? batch->callers : 1;
  question.times = callers;
  const Generation asked = generation();
  const Instant sent = clock_->now();
  const std::exception_ptr failure = send(question, deadline);
  const Instant received = clock_->now();
  charge.outcome = shareOf(question.outcome, place, charge.cost);

  held.lock();
  --record.underWay;
  if (!record.line.empty()) record.line.front()->makeReady();
  const bool refused = !failure && question.outcome.granted < callers;
  if (refused && asked == generation()) addRefusal(shard, record, question, sent, received);
  shard.dropIfEmpty(key);
  held.unlock();
  if (batch) batch->answer(question.outcome, failure);
  if (failure) throwCopyOf(failure);
}

std::exception_ptr RateRecords::send(RateCharge& question, Instant deadline) {
  try {
    driver_.take({&question, 1}, deadline);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

std::shared_ptr<RateRecords::Batch> RateRecords::join(Record& record, const RateCharge& charge,
                                                      Instant deadline) const {
  if (!record.line.empty() && record.line.back()->takes(charge)) {
    ++record.line.back()->callers;
  } else {
    const Instant now = clock_->now();
    record.line.push_back(std::make_shared<Batch>(charge, now + (deadline - now) / 2));
  }
  return record.line.back();
}

// True: the caller is to ask for its batch. False: somebody has.
bool RateRecords::waitToLead(Batch& batch, Instant deadline) {
  using State = Batch::State;
  std::unique_lock held(batch.mutex);
  for (;;) {
    if (batch.state == State::answered) return false;
    const Instant now = clock_->now();
    const bool isLed = batch.state == State::led;
    if (!isLed && (batch.state == State::ready || now >= batch.askAt)) break;
    if (isLed && now >= deadline) {
      throw OutcomeUnknown(
          "another caller has asked for this key as well: the store has not answered in time");
    }
    clock_->wait(held, batch.wakeUp, isLed ? deadline : batch.askAt);
  }
  batch.state = State::led;
  return true;
}

void RateRecords::remember(const RateCharge& charge, Instant sent, Generation asked) {
  const HashedString key(charge.key);
  Shard& shard = shardOf(key);
  const std::lock_guard guard(shard.mutex);
  if (asked == generation()) addRefusal(shard, shard.recordOf(key), charge, sent, clock_->now());
}

void RateRecords::addRefusal(Shard& shard, Record& record, const RateCharge& refused, Instant sent,
                             Instant now) {
  auto& known = record.refusals;
  auto place = std::find_if(known.begin(), known.end(),
                            [&](const Refusal& each) { return each.cost == refused.cost; });
  if (place == known.end() && known.size() < refusalsOfKey) {
    if (known.empty()) shard.makeRoom(record, now);
    try {
      place = known.emplace(known.end());
    } catch (const std::bad_alloc&) {
      return;  // it is asked again, then
    }
    ++shard.refusals;
  } else if (place == known.end()) {
    place = std::min_element(known.begin(), known.end(), [](const Refusal& a, const Refusal& b) {
      return a.certainUntil < b.certainUntil;
    });
  }
  *place = {.law = *refused.law,
            .cost = refused.cost,
            .remaining = refused.outcome.remaining,
            .certainUntil = saturatingAdd(sent, refused.outcome.retryAfter),
            .retryAt = saturatingAdd(now, refused.outcome.retryAfter),
            .resetAt = saturatingAdd(now, refused.outcome.resetAfter)};
}

void RateRecords::forgetRefusals(std::string_view text) {
  // First, so that no older answer is remembered after what follows.
  generation_.fetch_add(1, std::memory_order_acq_rel);
  const HashedString key(text);
  Shard& shard = shardOf(key);
  const std::lock_guard guard(shard.mutex);
  Record* const record = shard.find(key);
  if (record == nullptr) return;
  shard.refusals -= static_cast<int>(record->refusals.size());
  record->refusals.clear();
  shard.dropIfEmpty(key);
}

}  // namespace lockkeeper::detail
