#include "limit/token_stock.h"

#include <algorithm>

#include "lockkeeper/error.h"

namespace lockkeeper::detail {

bool TokenStock::take(RateCharge& charge, Instant now) {
  const std::lock_guard guard(mutex_);
  const auto found = shelves_.find(charge.key);
  if (found == shelves_.end()) return false;
  Shelf& shelf = found->second;
  if (shelf.units == 0 || shelf.law != *charge.law) return false;
  --shelf.units;
  shelf.idleAt = now + shelf.idle;
  const auto untilReset = std::chrono::ceil<std::chrono::microseconds>(shelf.resetAt - now);
  charge.outcome = {.granted = 1,
                    .remaining = shelf.remaining + shelf.units,
                    .resetAfter = std::max(untilReset, untilReset.zero())};
  return true;
}

void TokenStock::add(const RateCharge& charge, std::int64_t units, std::chrono::nanoseconds idle,
                     Instant now) {
  const std::lock_guard guard(mutex_);
  auto found = shelves_.find(charge.key);
  if (found == shelves_.end()) found = shelves_.try_emplace(std::string(charge.key)).first;
  Shelf& shelf = found->second;
  // What is left of another law is wasted: it cannot be given back in the measure of the new one.
  shelf.units = (shelf.law == *charge.law ? shelf.units : 0) + units;
  shelf.law = *charge.law;
  shelf.remaining = charge.outcome.remaining;
  shelf.resetAt = now + charge.outcome.resetAfter;
  shelf.idle = idle;
  shelf.idleAt = now + idle;
  if (!keeper_.joinable()) keeper_ = std::thread([this] { keep(); });
  if (shelf.idleAt < sleepsUntil_) wakeUp_.notify_one();
}

void TokenStock::drop(std::string_view key) {
  const std::lock_guard guard(mutex_);
  const auto found = shelves_.find(key);
  if (found != shelves_.end()) shelves_.erase(found);
}

void TokenStock::close() {
  {
    const std::lock_guard guard(mutex_);
    closing_ = true;
    wakeUp_.notify_one();
  }
  if (keeper_.joinable()) keeper_.join();
}

void TokenStock::keep() {
  std::unique_lock held(mutex_);
  while (!closing_) {
    auto idle = takeIdle(clock_->now());
    if (idle.empty()) {
      sleepsUntil_ = nextIdle();
      clock_->wait(held, wakeUp_, sleepsUntil_);
      sleepsUntil_ = Instant::min();
      continue;
    }
    held.unlock();
    giveBack(idle);
    held.lock();
  }
  const auto rest = takeIdle(Instant::max());
  held.unlock();
  giveBack(rest);
}

std::vector<TokenStock::Shelves::node_type> TokenStock::takeIdle(Instant now) {
  std::vector<Shelves::node_type> idle;
  for (auto shelf = shelves_.begin(); shelf != shelves_.end();) {
    const auto next = std::next(shelf);
    if (shelf->second.idleAt <= now) idle.push_back(shelves_.extract(shelf));
    shelf = next;
  }
  return idle;
}

Instant TokenStock::nextIdle() const {
  Instant next = Instant::max();
  for (const auto& [key, shelf] : shelves_) next = std::min(next, shelf.idleAt);
  return next;
}

void TokenStock::giveBack(const std::vector<Shelves::node_type>& shelves) {
  const Instant deadline = saturatingAdd(clock_->now(), operationTimeout_);
  try {
    for (const auto& shelf : shelves) {
      if (shelf.mapped().units == 0) continue;
      driver_->refund({.key = shelf.key(), .law = &shelf.mapped().law, .cost = shelf.mapped().units},
                      deadline);
    }
  } catch (const std::exception&) {
    // The store is down: what it was charged for is wasted, and the limit is kept.
  }
}

}  // namespace lockkeeper::detail
