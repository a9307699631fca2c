#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lockkeeper/environment.h"
#include "lockkeeper/sql/socket_watch.h"
#include "session/server_options.h"
#include "session/server_session.h"

namespace lockkeeper::mysql {

/// A session made ready, with a server that is fit for us.
struct ReadySession {
  std::unique_ptr<ServerSession> session;
  std::string
      durability;  ///< What a crash of the server does to what it has acknowledged, in one line for people.
};

/// What a session needs before it is used; "" for nothing.
struct Preparation {
  std::string setUp{};
  std::string schema{};      ///< Sent where the options say that tables are to be made.
  std::string checkTable{};  ///< Fails unless the table is there and may be used.
};

/// Connects, checks the server and prepares the session. Blocks until `deadline` plus one second. Throws
/// StoreUnavailable, and ConfigError that tells apart what to mend.
ReadySession openSession(const ServerOptions& options, const Preparation& preparation,
                         std::shared_ptr<Clock> clock, sql::SocketWatch& watch, Instant deadline);

}  // namespace lockkeeper::mysql
