#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "getlock/getlock_options.h"
#include "getlock/lock_sessions.h"
#include "lockkeeper/driver/fork_guard.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/mysql/getlock_driver.h"
#include "lockkeeper/sql/socket_watch.h"

namespace lockkeeper::mysql {

/// What the driver's operations share.
class GetLockDriver::Impl {
 public:
  using Use = LockSessions::Use;

  Impl(GetLockOptions options, Environment environment);

  AcquireResult acquire(const AcquireRequest& request);
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                               std::stop_token stop);
  void renew(std::span<Renewal> renewals, Instant deadline);
  ReleaseOutcome release(const Claim& claim, Instant deadline);
  std::optional<Holder> holder(std::string_view key, Instant deadline);
  Promises promises() const;
  const std::string& display() const { return options_.server.display; }
  void addLossListener(std::weak_ptr<LossListener> listener) {
    sessions_.addLossListener(std::move(listener));
  }

  const ForkGuard forkGuard;

 private:
  Instant now() const { return environment_.clock->now(); }

  std::unique_ptr<ServerSession> open(Instant deadline);

  /// Reads the reply that an earlier call left behind, and keeps what it brought. False when the session is
  /// lost, and closed. Throws StoreUnavailable when the reply does not come.
  bool settle(Use& use, Instant deadline);

  /// Sends the session's batch and reads the reply; null when none has come by the deadline. Throws
  /// StoreUnavailable (nothing was sent), and OutcomeUnknown when the session is lost, and closed.
  const Reply* exchange(Use& use, Instant deadline);
  void send(Use& use, Instant deadline);
  const Reply& receive(Use& use);

  /// All renewals that one session answers for.
  struct Heartbeat;
  void send(Heartbeat& beat, Instant deadline);
  void collect(Heartbeat& beat, Instant deadline);

  /// Begins a batch with the claim.
  void prepareClaim(Use& use, const std::string& name, const AcquireRequest& request,
                    std::chrono::seconds wait);
  /// What the reply to it comes to; null: it has not come.
  AcquireResult outcome(Use& use, const Reply* reply, const std::string& name, const AcquireRequest& request,
                        Instant sentAt);
  /// Gives the name, which the session holds, a full ttl from now.
  Granted regrant(Use& use, const std::string& name, const AcquireRequest& request, Instant deadline);
  /// Gives back a name that was got without a fence.
  void giveBack(Use& use, const std::string& name);
  [[noreturn]] void lose(Use& use, const std::string& why);

  /// Whether the reply came from the session that we know.
  static bool sameSession(const LockSession& session, const Reply& reply, std::size_t column);

  /// What the reply to a look at the name says.
  std::optional<Holder> holderIn(const Reply& reply, const std::string& name);

  /// Ends the wait of the session's claim; false when its reply does not come for all that.
  bool cancel(Use& waiting);

  const GetLockOptions options_;
  const Environment environment_;
  sql::SocketWatch watch_;
  LockSessions sessions_;

  mutable std::mutex durabilityMutex_;
  std::string durability_ = "not connected yet";
};

}  // namespace lockkeeper::mysql
