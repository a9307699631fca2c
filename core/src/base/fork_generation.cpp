#include "base/fork_generation.h"

#include <pthread.h>

#include <atomic>

namespace lockkeeper::detail {

namespace {
std::atomic<std::uint64_t> generation{0};
}

std::uint64_t forkGeneration() noexcept {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace lockkeeper::detail
