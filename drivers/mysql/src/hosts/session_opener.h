#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "hosts/host_search.h"
#include "hosts/session_rules.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/environment.h"
#include "session/server_check.h"
#include "session/server_options.h"
#include "session/server_session.h"
#include "session/wait/socket_watch.h"

namespace lockkeeper::mysql {

/// What a session needs before it is used; "" for nothing.
struct Preparation {
  SessionRules rules{};
  std::string schema{};          ///< Makes the table that `readTable` reads, if the options say so.
  std::string checkTable{};      ///< Fails unless the table is there and may be used.
  std::string schemaFile{};      ///< What makes the table, for messages.
  std::string readTable{};       ///< Reads any table: in a replication group, it needs the group's majority.
  bool forNamedLocks = false;    ///< GET_LOCK: nothing may stand between the session and the server.
  bool namesClient = false;      ///< The session needs its clientName().
  bool tellsDurability = false;  ///< The listener is told what a crash of the server does to its commits.
};

/// Makes sessions that are ready for use, with the one server that the URI names or with that one of several
/// which takes the writes, and remembers what is known of it. Thread-safe.
class SessionOpener {
 public:
  SessionOpener(ServerOptions options, Preparation preparation, const Environment& environment);

  /// Connects, checks the server and prepares the session. Blocks until `deadline`; with one host, also for
  /// the lookup of its name. Throws StoreUnavailable, and ConfigError that tells apart what to mend.
  std::unique_ptr<ServerSession> open(Instant deadline);

  /// Whether the session is with the server that the last one was opened with; a former primary's is not, nor
  /// is that of one which has told a later log-in that it takes no writes.
  bool isCurrent(const ServerSession& session) const { return session.term() == term_; }

  /// Finds out whether another server has taken over, for isCurrent(), by a session that is closed at once.
  /// Does so every few seconds, whoever asks for it. Blocks as open().
  void lookForPrimary(Instant deadline);

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
  /// Throws StoreUnavailable when there is no thread for it.
  void startWatch();
  const Reply& ask(ServerSession& session, const ServerAddress& address, const std::string& statements,
                   Instant deadline) const;
  /// Pins what our statements depend on, and returns the variables that it and judgeServer() look at.
  ServerSettings pin(ServerSession& session, const ServerAddress& address, Instant deadline) const;
  /// Whether the tables are to be made: they are not there, and the options want them.
  bool findsNoTable(ServerSession& session, const ServerAddress& address, Instant deadline) const;
  /// Checks the server, and makes the session ready. Writes into the report what it learns on the way. When
  /// the server takes no writes any more, no session with it is current from now on.
  void prepare(ServerSession& session, const ServerAddress& address, Instant deadline, HostReport& report);
  void checkAndSetUp(ServerSession& session, const ServerAddress& address, Instant deadline,
                     HostReport& report);
  /// Returns when a majority of the server's replication group has answered. A session for named locks asks
  /// the group from now on before each statement that reads a table.
  void reachMajority(ServerSession& session, const ServerAddress& address, const std::string& consistency,
                     Instant deadline);
  std::optional<ServerFacts> facts() const;
  /// Remembers what the session says of its server.
  void note(ServerSession& session);

  const ServerOptions options_;
  const Preparation preparation_;
  const Environment environment_;
  SocketWatch watch_;

  mutable std::mutex mutex_;
  std::optional<ServerFacts> facts_;
  std::string server_;  // That of the last session.
  std::atomic<std::uint64_t> term_ = 0;
  std::atomic<Instant> nextLook_{Instant::min()};
  std::optional<HostSearch> search_;  // With several hosts.
};

}  // namespace lockkeeper::mysql
