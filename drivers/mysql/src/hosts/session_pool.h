#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hosts/session_opener.h"
#include "lockkeeper/base/clock.h"
#include "lockkeeper/error.h"
#include "session/server_session.h"

namespace lockkeeper::mysql {

/// All sessions of a pool stayed in use: by callers who may wait for the server, or for each other.
class SessionsInUse : public StoreUnavailable {
 public:
  using StoreUnavailable::StoreUnavailable;
};

/// A bounded number of sessions, any of which serves any caller. Opened when needed. Thread-safe.
class SessionPool {
 public:
  /// `opener` must outlive the pool.
  SessionPool(SessionOpener& opener, std::size_t most) : opener_(opener), most_(most) {
    idle_.reserve(most);  // A session can be put back where no memory is left.
  }

  /// The use of one session, by one thread. Closes it, unless it is to be kept.
  class Use {
   public:
    /// Blocks until `deadline`, and the opening of a session besides; throws SessionsInUse when none is free
    /// by `freeBy`. Throws StoreUnavailable and ConfigError.
    Use(SessionPool& pool, Instant deadline) : Use(pool, deadline, deadline) {}
    Use(SessionPool& pool, Instant deadline, Instant freeBy);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();

    ServerSession& session() { return *session_; }
    Clock& clock() const { return pool_.clock(); }

    /// The session is sound, no reply is due and no transaction open. Holds until it is asked again.
    void keep() { keep_ = true; }

    /// Close it in any case.
    void close() { close_ = true; }

    /// Its statements may take long: that one has no answer in time does not mean that the server is dead.
    void expectSlowAnswers() { slow_ = true; }

    /// False when the server takes no writes any more, as far as is known.
    bool isCurrent() const { return pool_.opener_.isCurrent(*session_); }

    /// SessionOpener::lookForPrimary().
    void lookForPrimary(Instant end) { pool_.opener_.lookForPrimary(end); }

    /// Sends the statements and reads the reply. Throws what throwFault() says for an error; then a
    /// transaction is rolled back and the session kept, unless it is lost. One that found its server a
    /// replica is closed, and so are all idle ones, so that the next callers look for the primary.
    const Reply& ask(std::string_view statements, Instant deadline);

    /// As ask(), for one statement without a result that is used again and again.
    const Reply& execute(const std::string& statement, std::span<const ServerSession::Parameter> parameters,
                         Instant deadline);

    /// As ask(), but reads the reply to what has been sent to session().
    const Reply& receive(std::string_view statements, Instant deadline);

    /// As ask(), but ends statements that have no answer at `cancelAt`, by a session of `cancelling`: a
    /// server whose client has left goes on waiting for a row on his behalf, and others queue behind. The
    /// first statement must be the one that waits: of the others it is not seen. Throws Contention then;
    /// OutcomeUnknown when the server does not even do that, or may have committed.
    const Reply& askOrCancel(std::string_view statements, Instant cancelAt, Instant deadline,
                             SessionPool& cancelling);

   private:
    /// The session, to be asked: it may be kept only if its last statements are answered.
    ServerSession& asked() {
      keep_ = false;
      return *session_;
    }
    const Reply& checked(const Reply& reply, std::string_view statements, Instant deadline);

    SessionPool& pool_;
    std::unique_ptr<ServerSession> session_;
    bool keep_ = false;
    bool close_ = false;
    bool slow_ = false;
    bool mayBeHit_ = false;
  };

  /// Ends what a session is doing. False when its server has not said so by `deadline`: ours may be another
  /// one, with other sessions of the same numbers.
  bool cancel(const ServerSession& session, Instant deadline);

  /// When to call cancel(), so that it is done by `deadline`.
  Instant latestCancel(Instant deadline);

  const std::string& display() const { return opener_.display(); }
  Clock& clock() const { return opener_.clock(); }

 private:
  std::unique_ptr<ServerSession> take(Instant deadline, Instant freeBy);
  /// A server that lets nobody in at present, or too late, still answers those that are in. Null when none
  /// of them comes back by `deadline`.
  std::unique_ptr<ServerSession> takeReturned(Instant deadline);
  /// One that still answers, with the primary, and is in use from now on; null when there is none. Moves the
  /// others to `dead`, to be closed. Called with the mutex held.
  std::unique_ptr<ServerSession> takeIdle(std::vector<std::unique_ptr<ServerSession>>& dead);
  void putBack(std::unique_ptr<ServerSession> session) noexcept;
  void closeIdle();

  SessionOpener& opener_;
  const std::size_t most_;

  std::mutex mutex_;
  // Each session that is given back wakes up one waiter of each kind.
  std::condition_variable free_;      // for take()
  std::condition_variable returned_;  // for takeReturned()
  std::vector<std::unique_ptr<ServerSession>> idle_;
  std::size_t used_ = 0;
};

}  // namespace lockkeeper::mysql
