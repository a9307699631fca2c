#include "lockkeeper/stream/shared_poll.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <system_error>
#include <utility>

namespace lockkeeper {

SharedPoll::SharedPoll(Clock& clock) : clock_(clock), interrupts_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (interrupts_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

SharedPoll::~SharedPoll() { ::close(interrupts_); }

void SharedPoll::Lock::unlock() {
  std::array<std::condition_variable*, 64> due;
  const std::size_t count = std::exchange(all_.dueCount_, 0);
  std::copy_n(all_.due_.begin(), count, due.begin());
  lock_.unlock();
  for (std::size_t index = 0; index < count; ++index) due[index]->notify_one();
}

void SharedPoll::poll(std::span<pollfd> polled, Instant until) const {
  polled[0] = {interrupts_, POLLIN, 0};
  if (::poll(polled.data(), polled.size(), pollTime(until, clock_.now())) < 0) {
    for (pollfd& each : polled) each.revents = 0;
  }
  if (polled[0].revents == 0) return;
  std::uint64_t count = 0;
  (void)!::read(interrupts_, &count, sizeof count);
}

void SharedPoll::interrupt() const {
  const std::uint64_t one = 1;
  if (polling_) (void)!::write(interrupts_, &one, sizeof one);
}

// A woken waiter polls, or passes the role on, by itself: passOn() must not choose it.
void SharedPoll::wake(Waiter& waiter) noexcept {
  if (waiter.waker_ == nullptr) return;
  notifyLater(*waiter.waker_);
  std::erase(sleeping_, &waiter);
}

void SharedPoll::wakeAll() noexcept {
  for (const Waiter* const each : sleeping_) notifyLater(*each->waker_);
  sleeping_.clear();
}

Instant SharedPoll::sleep(Lock& lock, Waiter& self, Instant until) {
  sleeping_.reserve(sleeping_.size() + 1);
  std::condition_variable& waker = wakers_.take();
  self.waker_ = &waker;
  sleeping_.push_back(&self);
  // Also when the clock throws: a waiter that has left must not be chosen.
  const struct Seat {
    SharedPoll& all;
    Waiter& self;

    ~Seat() {
      std::erase(all.sleeping_, &self);
      all.wakers_.recycle(*std::exchange(self.waker_, nullptr));
    }
  } seat{*this, self};
  // The wait unlocks the mutex.
  for (; dueCount_ > 0; --dueCount_) due_[dueCount_ - 1]->notify_one();
  clock_.wait(lock.lock_, waker, until);
  return clock_.now();
}

// The last waiter probably waits longest, so the role changes as seldom as possible. The waiter stays in the
// list, because it may leave before it sees that it was chosen.
void SharedPoll::passOn() noexcept {
  if (!polling_ && !sleeping_.empty()) notifyLater(*sleeping_.back()->waker_);
}

void SharedPoll::notifyLater(std::condition_variable& waker) noexcept {
  if (dueCount_ == due_.size()) return waker.notify_one();
  due_[dueCount_++] = &waker;
}

int pollTime(Instant until, Instant now) {
  if (until <= now) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  return static_cast<int>(std::min<long long>(left, INT_MAX));
}

}  // namespace lockkeeper
