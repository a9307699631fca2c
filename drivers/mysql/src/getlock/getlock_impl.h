#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "getlock/fence_counter.h"
#include "getlock/getlock_options.h"
#include "getlock/session/lock_sessions.h"
#include "hosts/session_opener.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/mysql/getlock_driver.h"
#include "lockkeeper/mysql/rate_table.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::mysql {

/// What the driver's operations share.
class GetLockDriver::Impl {
 public:
  using Use = LockSessions::Use;

  Impl(const StoreUri& uri, const Environment& environment)
      : Impl(GetLockOptions::fromUri(uri), uri, environment) {}
  Impl(const GetLockOptions& options, const StoreUri& uri, const Environment& environment);

  AcquireResult acquire(const AcquireRequest& request);
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                               std::stop_token stop);
  void renew(std::span<Renewal> renewals, Instant deadline);
  ReleaseOutcome release(const Claim& claim, Instant deadline);
  std::optional<Holder> holder(std::string_view key, Instant deadline);
  Promises promises() const;
  const std::string& display() const { return opener_.display(); }
  void addLossListener(std::weak_ptr<LossListener> listener) {
    sessions_.addLossListener(std::move(listener));
  }

  const ForkGuard forkGuard;
  RateTable rates;

 private:
  /// Throws std::invalid_argument for one that the server cannot count.
  static void checkTtl(std::chrono::milliseconds ttl);

  Instant now() const { return opener_.clock().now(); }
  std::chrono::milliseconds ioTimeout() const { return opener_.options().ioTimeout; }

  /// Reads the reply that an earlier call left behind, and keeps what it brought. False when the session is
  /// lost, and closed. Throws StoreUnavailable when the reply does not come.
  bool readPendingReply(Use& use, Instant deadline);

  /// Sends the session's batch and reads the reply; null when none has come by the deadline. Throws
  /// StoreUnavailable (nothing was sent), and OutcomeUnknown when the session is lost, and closed.
  const Reply* exchange(Use& use, Instant deadline);
  void send(Use& use, Instant deadline);
  /// Reads the reply. Closes the session and throws OutcomeUnknown when it is lost, NotPrimary when the reply
  /// says that its server is not the primary any more: then all sessions with that are closed.
  const Reply& receive(Use& use);
  /// Stands in the server's queue for so long at most. Empty when that is over, and the wait is not.
  std::optional<AcquireResult> waitInQueue(Use& use, const AcquireRequest& request,
                                           std::chrono::seconds longest, Instant waitUntil,
                                           const std::stop_token& stop, std::chrono::seconds idleTimeout);
  /// Waits for the reply of a claim that stands in the server's queue. False at `until` or when `stop` is
  /// requested. Looks after the server now and then where another one may take its place.
  bool awaitTurn(Use& use, Instant until, const std::stop_token& stop, std::chrono::seconds idleTimeout);
  void lookAfterServer(Instant end);

  /// All renewals that one session answers for.
  struct Heartbeat;
  template <class Step>
  void attempt(Heartbeat& beat, Step step);
  void send(Heartbeat& beat, Instant deadline);
  /// Until the reply of one can be read, or until `wakeUp` can.
  void awaitAny(std::span<Heartbeat* const> sent, Instant deadline, int wakeUp);
  void collect(Heartbeat& beat, Instant deadline);

  /// What the reply to a claim comes to, with the fence where that was drawn at once; null: it has not come.
  AcquireResult outcome(Use& use, const Reply* reply, const std::string& name, const AcquireRequest& request,
                        Instant sentAt);
  /// Gives the name, which the session holds, a full ttl from now; and a fence, if the session holds no
  /// other.
  Granted regrant(Use& use, const std::string& name, const AcquireRequest& request, Instant deadline);
  /// The grant with its fence, drawn when it has none yet. The name is given back when that fails.
  Granted withFence(Use use, const std::string& name, const AcquireRequest& request, Granted granted,
                    Instant deadline);
  /// Throws the error of a batch in which the session was granted the name, or may have been, and gives that
  /// back.
  [[noreturn]] void failGranted(Use& use, const Reply& reply, const std::string& name, const Token& token);
  /// Gives back a name that the session holds, or may hold, for a claim that has failed.
  void freeName(Use& use, const std::string& name, const Token& token);
  void freeName(const std::string& name, const Token& token);
  [[noreturn]] void lose(Use& use, const std::string& why);
  /// Closes the session, and all others with its server, which is not the primary any more.
  void retire(Use& use);
  void retireHolderOf(const std::string& name, const Token& token);

  /// Closes the session, and throws, unless the reply came from the session that we know (else
  /// OutcomeUnknown) on a server that still takes writes (else NotPrimary, and all sessions with it are
  /// closed): one that has become a replica grants locks that mean nothing.
  void checkAnswer(Use& use, const Reply& reply);
  [[noreturn]] void fail(const Reply& reply) const { opener_.fail(reply); }

  /// What the reply to a look at the name says.
  std::optional<Holder> holderIn(const Reply& reply, const std::string& name);

  /// Ends the wait of the session's claim; false when its reply does not come for all that.
  bool cancel(Use& waiting);

  SessionOpener opener_;
  LockSessions sessions_;
  std::optional<FenceCounter> fences_;
};

}  // namespace lockkeeper::mysql
