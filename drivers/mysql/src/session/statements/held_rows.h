#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "lockkeeper/base/clock.h"
#include "session/statements/sql_text.h"

// The rule for every transaction of more than one round trip: its first batch limits how long the server
// waits for the next one, and its last batch restores the server's own limit. When the client is paused or
// its host is gone, the server ends the session, which undoes the transaction and frees its rows.

namespace lockkeeper::mysql {

/// The statement in the first batch.
inline std::string idleLimit(std::chrono::seconds idle) {
  std::string statement;
  addIdleTimeout(statement, idle);
  return statement;
}

/// The statement in the last batch, in front of all others: whatever fails after it, the session is as it
/// was. A transaction that failed before leaves the limit, so that the server may end the idle session early.
inline constexpr const char* noIdleLimit = "SET SESSION wait_timeout=DEFAULT";

/// The limit of a transaction that ends by `deadline`, in the whole seconds that servers count.
inline std::chrono::seconds longestIdle(Instant now, Instant deadline) {
  using std::chrono::seconds;
  return std::clamp(std::chrono::ceil<seconds>(deadline - now), seconds{1}, seconds{3600});
}

}  // namespace lockkeeper::mysql
