#include "lockkeeper/base/fork_guard.h"

#include <pthread.h>

#include <atomic>

#include "lockkeeper/error.h"

namespace lockkeeper {

namespace {

std::atomic<std::uint64_t> forks{0};

// How many fork()s lie between the process's first ancestor and itself.
std::uint64_t generation() noexcept {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

}  // namespace

ForkGuard::ForkGuard() noexcept : generation_(generation()) {}

bool ForkGuard::inherited() const noexcept { return generation_ != generation(); }

void ForkGuard::check() const {
  if (inherited())
    throw ForkedError("this store's connections belong to the parent process: open the store again");
}

}  // namespace lockkeeper
