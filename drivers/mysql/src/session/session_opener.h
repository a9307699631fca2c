#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/environment.h"
#include "session/server_check.h"
#include "session/server_options.h"
#include "session/server_session.h"
#include "session/socket_watch.h"

namespace lockkeeper::mysql {

/// What a session needs before it is used; "" for nothing.
struct Preparation {
  std::string setUp{};
  std::string schema{};        ///< Sent where the options say that tables are to be made.
  std::string checkTable{};    ///< Fails unless the table is there and may be used.
  std::string schemaFile{};    ///< What makes the table, for messages.
  bool forNamedLocks = false;  ///< GET_LOCK: nothing may stand between the session and the server.
  bool tells = false;          ///< The listener is told what a crash of the server does to its commits.
};

/// Makes sessions with one server that are ready for use, and remembers what is known of the server.
/// Thread-safe.
class SessionOpener {
 public:
  SessionOpener(ServerOptions options, Preparation preparation, const Environment& environment);

  /// Connects, checks the server and prepares the session. Blocks until `deadline` plus one second. Throws
  /// StoreUnavailable, and ConfigError that tells apart what to mend.
  std::unique_ptr<ServerSession> open(Instant deadline);

  const ServerOptions& options() const { return options_; }
  const std::string& display() const { return options_.display; }

  /// throwFault(), in the name of this store.
  [[noreturn]] void fail(const Reply& reply) const;
  Clock& clock() const { return *environment_.clock; }

  /// What numbers that are kept in InnoDB are worth on the server that was last connected to; `durable` only
  /// when that is known.
  FencePromise fencePromise() const;
  /// What a crash of it does to its commits: one line for people.
  std::string durability() const;

 private:
  std::optional<ServerFacts> facts() const;
  void note(const ServerFacts& facts);

  const ServerOptions options_;
  const Preparation preparation_;
  const Environment environment_;
  SocketWatch watch_;

  mutable std::mutex mutex_;
  std::optional<ServerFacts> facts_;
};

}  // namespace lockkeeper::mysql
