#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "session/server_session.h"

namespace lockkeeper::mysql {

struct LockSession;

/// A name that a session of ours holds on the server.
struct HeldName {
  std::string name;
  Token token;
  std::string owner;
  std::optional<Fence> fence;  ///< Empty until it is drawn.
  Instant end;                 ///< Of its lease. After that, the next batch of the session frees it.
  LockSession* session;
  std::uint64_t sessionId;  ///< As the server counts it.
};

/// A claim whose reply has not come by its deadline.
struct UnseenClaim {
  std::string name;
  Token token;
  std::string owner;
  Instant until;  ///< When its lease would end.
};

/// A session, the names that it holds, and what it has sent. A reply that is late stays due: a server that
/// was slow for a while costs nobody his locks. Only the thread that has the session in use touches it, and
/// the LockSessions that it belongs to.
struct LockSession {
  std::unique_ptr<ServerSession> server{};  ///< Null while it is being opened.
  bool inUse = true;
  bool waiting = false;  ///< In the server's queue for a name.
  /// Its server is not the primary any more: closed as soon as it is not in use.
  std::atomic<bool> retired = false;

  std::vector<HeldName*> held{};       ///< Changed under the set's mutex only.
  Instant firstEnd = Instant::max();   ///< No lease of `held` ends before.
  std::vector<std::string> toFree{};   ///< Names whose leases have ended, until the server has freed them.
  std::chrono::seconds idleTimeout{};  ///< Its wait_timeout; 0: the server's own.

  std::string batch{};  ///< The statements to send: a preamble, then those that matter.
  Instant sentAt{};     ///< When that was.
  bool replyDue = false;
  std::optional<UnseenClaim> unseen{};

  /// Begins a batch with the preamble: frees what is to be freed, and sets the idle timeout to at least
  /// `idle`; to exactly that when nothing is held that needs a longer one. 0: as it is.
  void begin(std::chrono::seconds idle);

  /// False when the session is gone; it is cut off at `until`.
  bool send(Instant now, Instant until);

  /// Reads the reply that is due. `reply.answered` does not count the preamble.
  const Reply& receive(Instant until);

  /// When everything that it may hold has ended.
  Instant lastEnd() const;

  /// The server has ended it or will before it could use it; or the reply that is due is not worth waiting
  /// for any more.
  bool dead(Instant now) const;
  /// Nothing is due, and it has been idle for about as long as the server lets it be.
  bool timedOut(Instant now) const;

 private:
  std::size_t preamble_ = 0;
  std::chrono::seconds nextIdleTimeout_{};
};

}  // namespace lockkeeper::mysql
