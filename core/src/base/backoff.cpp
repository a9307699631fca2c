#include "lockkeeper/internal/backoff.h"

#include <algorithm>

namespace lockkeeper {

std::chrono::nanoseconds Backoff::next(Random& random) {
  const auto longest = std::min(next_, cap_);
  next_ = 2 * longest;
  const auto fixed = longest / 2;
  const auto jitter = random.upTo(static_cast<std::uint64_t>((longest - fixed).count()));
  return fixed + std::chrono::nanoseconds(jitter);
}

bool pauseUntil(Clock& clock, Instant until, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable wakeUp;
  const std::stop_callback onStop(stop, [&] {
    const std::lock_guard held(mutex);
    wakeUp.notify_one();
  });
  std::unique_lock held(mutex);
  while (!stop.stop_requested() && clock.now() < until) clock.wait(held, wakeUp, until);
  return !stop.stop_requested();
}

}  // namespace lockkeeper
