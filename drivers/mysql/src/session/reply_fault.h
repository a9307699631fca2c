#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/error.h"
#include "session/server_session.h"

namespace lockkeeper::mysql {

// The errors of server and client library as lockkeeper's. `display` names the store in their messages.

/// The server undid the transaction, because it stood in a cycle of those who wait for rows.
class RowDeadlock : public StoreUnavailable {
 public:
  using StoreUnavailable::StoreUnavailable;
};

/// Of a log-in that failed.
[[noreturn]] void throwConnectFault(unsigned error, const std::string& text, const std::string& display);

/// Of any statement: OutcomeUnknown when the session was lost on the way, StoreUnavailable for what passes by
/// itself (RowDeadlock is one), ConfigError for what the server will never do.
[[noreturn]] void throwFault(const Reply& reply, const std::string& display);

/// Of a GET_LOCK for `key`, on a session that holds the locks `held`: as throwFault(), or Deadlock.
[[noreturn]] void throwLockFault(const Reply& reply, std::string_view key,
                                 const std::vector<std::string>& held, const std::string& display);

}  // namespace lockkeeper::mysql
