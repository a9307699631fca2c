#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/environment.h"
#include "session/fault.h"
#include "session/server_options.h"
#include "session/session.h"

namespace lockkeeper::postgres {

/// The tables that a pool's statements use, with their schema.
struct Tables {
  std::string script;  ///< Statements that make them where they are missing, for createTable.
  std::string file;    ///< The file that has the script, for messages.
};

/// A bounded number of sessions, opened when needed, with the one server that the URI names, or with that one
/// of several which takes the writes. Thread-safe.
class Sessions {
 public:
  Sessions(ServerOptions options, Tables tables, const Environment& environment);

  /// The use of one session, by one thread. Gives it back; closes it unless it is usable.
  class Use {
   public:
    Use(Sessions& sessions, std::unique_ptr<Session> session)
        : sessions_(sessions), session_(std::move(session)) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { sessions_.putBack(std::move(session_)); }

    Session& operator*() { return *session_; }
    Session* operator->() { return session_.get(); }

   private:
    Sessions& sessions_;
    std::unique_ptr<Session> session_;
  };

  /// Blocks until `deadline`, and for the lookup of a host's name. Throws StoreUnavailable and ConfigError.
  Use use(Instant deadline);

  /// What `call` returns for any session. A session whose server takes no writes any more is not used again,
  /// nor are the others with it.
  template <class Call>
  auto with(Instant deadline, Call call) {
    Use session = use(deadline);
    try {
      return call(*session);
    } catch (const NotPrimary&) {
      forgetPrimary();
      throw;
    }
  }

  /// Session::ask() and Session::transact() on any session, as with() has it.
  /// @{
  Result ask(const Statement& statement, Instant deadline) {
    return with(deadline, [&](Session& session) { return session.ask(statement, deadline); });
  }
  std::vector<Result> transact(std::span<const Statement> statements, Instant deadline) {
    return with(deadline, [&](Session& session) { return session.transact(statements, deadline); });
  }
  /// @}

  /// A session for the caller alone, which does not count and does not listen. Throws as use(), and
  /// OutcomeUnknown when it cannot be told whether the tables have been made.
  std::unique_ptr<Session> open(Instant deadline);

  /// Whether the session is with the server that was found to take the writes last.
  bool isCurrent(const Session& session) const { return session.term() == term_; }

  /// A server has said that it takes no writes any more: its sessions are not used again.
  void forgetPrimary();

  /// Asks all hosts which of them takes the writes, by new sessions. Throws as use().
  void lookForPrimary(Instant deadline);

  /// Is called, on any thread, when another server takes the writes than before, before it is asked for
  /// anything.
  void onNewPrimary(std::function<void()> callback) { onNewPrimary_ = std::move(callback); }

  /// From now on, sessions listen on the channel, unless a pooler gives them. `heard` is called, by calls
  /// that use a session and by hear(), with the text of each notification, perhaps by several sessions with
  /// the same one. It does not block and calls nothing of this class. Only the first call counts.
  void listen(std::string channel, std::function<void(std::string_view text)> heard);
  /// Reads what idle sessions have been notified of. Does not block.
  void hear() noexcept;

  const ServerOptions& options() const { return options_; }
  Clock& clock() const { return *environment_.clock; }
  /// What rows are worth on the server that was last connected to.
  Promises promises() const;

 private:
  friend class Use;

  void putBack(std::unique_ptr<Session> session) noexcept;
  void prepare(Session& session, Instant deadline);
  /// Whether there was a notification.
  bool hear(Session& session) noexcept;
  std::unique_ptr<Session> takeIdle();
  /// To any host, or to `only` one. Throws unless it is of the highest timeline so far.
  std::unique_ptr<Session> connect(std::optional<std::size_t> only, Instant deadline);
  void makeTables(Session& session, Instant deadline);
  /// Returns when no statement of a session that was given up can have an effect any more.
  void endGivenUp(Session& session, Instant deadline);

  const ServerOptions options_;
  const Tables tables_;
  const libpq::StoreFaults store_;
  const Environment environment_;
  std::function<void()> onNewPrimary_;

  mutable std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Session>> idle_;
  std::size_t used_ = 0;
  std::optional<std::size_t> primary_;  // The host that took the writes last.
  std::optional<std::size_t> known_;    // The same, also when it does not any more.
  std::uint32_t timeline_ = 0;
  std::optional<libpq::ServerFacts> facts_;
  std::atomic<std::uint64_t> term_ = 0;
  struct GivenUp {
    std::string backend;  // libpq::ServerFacts::backend
    Instant since;
  };
  std::vector<GivenUp> givenUp_;
  std::atomic<bool> anyGivenUp_ = false;
  std::atomic<bool> hasTables_ = false;
  std::string channel_;
  std::function<void(std::string_view text)> heard_;
  std::atomic<bool> listens_ = false;  // Both are set.
};

}  // namespace lockkeeper::postgres
