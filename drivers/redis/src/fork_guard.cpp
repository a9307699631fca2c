#include "fork_guard.h"

#include <pthread.h>

#include <atomic>

#include "lockkeeper/error.h"

namespace lockkeeper::redis {

namespace {

std::atomic<unsigned> forks{0};

unsigned generation() noexcept {
  [[maybe_unused]] static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return forks.load(std::memory_order_relaxed);
}

}  // namespace

ForkGuard::ForkGuard() noexcept : generation_(generation()) {}

bool ForkGuard::inherited() const noexcept { return generation_ != forks.load(std::memory_order_relaxed); }

void ForkGuard::check() const {
  if (inherited())
    throw ForkedError("this Redis connection belongs to the parent process: open the store again");
}

}  // namespace lockkeeper::redis
