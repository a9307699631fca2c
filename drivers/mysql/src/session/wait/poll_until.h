#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "lockkeeper/base/clock.h"

namespace lockkeeper::mysql {

/// Blocks until one of the sources can be used, or until `until`. Looks at the clock twice a second, because
/// poll() sleeps through the suspension of the machine.
inline void pollUntil(std::span<pollfd> sources, const Clock& clock, Instant until) {
  using std::chrono::milliseconds;
  constexpr milliseconds longestPoll{500};
  for (;;) {
    const Instant now = clock.now();
    const auto left = until <= now ? milliseconds{0} : std::chrono::ceil<milliseconds>(until - now);
    const int timeout = static_cast<int>(std::min(left, longestPoll).count());
    if (::poll(sources.data(), sources.size(), timeout) > 0 || now >= until) return;
  }
}

}  // namespace lockkeeper::mysql
