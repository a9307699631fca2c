#include "base/relay.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

namespace lockkeeper::detail {

namespace {

// The pause before work is tried again that memory was too short for.
constexpr std::chrono::milliseconds shortagePause{100};

}  // namespace

Relay::Relay(std::mutex& mutex, Clock& clock, std::size_t mostThreads, Work work)
    : mutex_(mutex), clock_(clock), mostThreads_(mostThreads), work_(std::move(work)) {}

void Relay::start(const std::shared_ptr<void>& owner) {
  if (!threads_.empty()) return;
  owner_ = owner;
  addThread();
}

void Relay::addThread() {
  threads_.emplace_back([this, owner = owner_.lock()] { run(); });
  ++running_;
}

// The waiting thread wakes up at `when` even if nothing is due any more by then. So most calls for later
// times need not notify it: most leases end soon after they are taken, and the next one falls due later.
void Relay::wakeUpAt(Instant when) {
  if (!sleepsBeyond(when)) return;
  asked_ = std::min(asked_, when);
  // Nor need other callers notify it until it has woken up and asked what is due.
  if (somebodyWaits_) sleepsUntil_ = when;
  wakeUp_.notify_one();
}

void Relay::stop() {
  stopping_ = true;
  wakeUp_.notify_all();
  placeFree_.notify_all();
  pauseOver_.notify_all();
}

void Relay::join(std::unique_lock<std::mutex>& held, Instant until) {
  if (threads_.empty()) return;
  std::size_t own = 0;
  for (const std::thread& thread : threads_) own += thread.get_id() == std::this_thread::get_id();
  while (running_ > own && clock_.now() < until) clock_.wait(held, ended_, until);
  const bool allEnded = running_ == own;
  std::vector<std::thread> threads = std::move(threads_);
  held.unlock();
  for (std::thread& thread : threads) {
    if (allEnded && thread.get_id() != std::this_thread::get_id()) {
      thread.join();
    } else {
      thread.detach();
    }
  }
  held.lock();
}

void Relay::run() {
  std::unique_lock held(mutex_);
  while (awaitWork(held)) {
    if (idle_ > 0) {
      placeFree_.notify_one();
    } else if (running_ < mostThreads_) {
      try {
        addThread();
      } catch (const std::exception&) {
        // No thread or no memory: this one takes its place again when it has done its work.
      }
    }
    try {
      work_.doIt(held);
    } catch (const std::bad_alloc&) {
      if (!held.owns_lock()) held.lock();
      if (!stopping_) clock_.wait(held, pauseOver_, clock_.now() + shortagePause);
    }
    wakeUpAt(work_.due());
  }
  if (!std::exchange(lastDone_, true)) work_.last(held);
  --running_;
  ended_.notify_all();
}

// True when something is due, and this thread is the one to do it.
bool Relay::awaitWork(std::unique_lock<std::mutex>& held) {
  ++idle_;
  while (somebodyWaits_ && !stopping_) placeFree_.wait(held);
  --idle_;
  if (stopping_) return false;
  somebodyWaits_ = true;
  for (;;) {
    const Instant next = work_.due();
    const Instant now = clock_.now();
    if (stopping_ || now >= next) break;
    if (now >= asked_) asked_ = Instant::max();
    sleepsUntil_ = std::min(next, asked_);
    clock_.wait(held, wakeUp_, sleepsUntil_);
    sleepsUntil_ = Instant::max();
  }
  somebodyWaits_ = false;
  return !stopping_;
}

}  // namespace lockkeeper::detail
