#pragma once

#include <algorithm>
#include <chrono>

#include "lockkeeper/base/clock.h"
#include "session/statements/sql_text.h"

// The rule for every transaction of more than one round trip: its first batch has an idleLimit(), and its
// last batch begins with noIdleLimit. When the client is paused or its host is gone, the server ends the
// session, which undoes the transaction and frees its rows. Whatever fails after noIdleLimit, the session is
// as it was. A transaction that failed before leaves the limit, so that the server may end the idle session
// early.

namespace lockkeeper::mysql {

/// The limit of a transaction that ends by `deadline`, in the whole seconds that servers count.
inline std::chrono::seconds longestIdle(Instant now, Instant deadline) {
  using std::chrono::seconds;
  return std::clamp(std::chrono::ceil<seconds>(deadline - now), seconds{1}, seconds{3600});
}

}  // namespace lockkeeper::mysql
