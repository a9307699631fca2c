#pragma once

#include <deque>
#include <memory>
#include <string>

#include "lockkeeper/internal/backoff.h"
#include "wire/dial/dialer.h"
#include "wire/mux/connection.h"

namespace lockkeeper::redis {

/// One server of a Multiplexer: the connection to it, or the next attempt to make one. After a failure the
/// next attempt is due 20 to 500 ms later, so that the clients of a restarted server do not come all at once.
/// Guarded by the multiplexer's mutex.
class Node {
 public:
  Node(std::size_t index, const RedisOptions& options, const Environment& environment,
       const DialRules& rules);

  const Dialer& dialer() const { return dialer_; }
  const std::string& store() const { return dialer_.store(); }

  /// Connected.
  bool ready() const { return connection != nullptr; }
  /// An answer is overdue: whether the server is alive shows when it has come.
  bool silent(Instant now) const;
  /// Has not told yet whether it can be reached.
  bool untried() const { return !tried_; }
  bool dialing() const { return dial != nullptr; }
  /// Its answer to our first attempt was that the set-up is wrong.
  bool misconfigured() const { return misconfigured_; }
  /// Why it is not connected.
  std::string why() const;
  ErrorCode code() const { return dialing() ? ErrorCode::storeUnavailable : code_; }
  /// Which start of the server the present connection leads to.
  const std::string& serverRun() const { return serverRun_; }
  /// As Dial::server(), of the present connection.
  const std::string& server() const { return server_; }

  /// Begins to connect, unless it is connected or connecting, or the next attempt is not due. True: begun.
  bool startDial(Instant now);
  /// Nobody has attended to the dial since then: that does not count as its time.
  void dialGoesOn(Instant attendedUntil, Instant now);
  void dialSucceeded(std::uint64_t connectionNumber, Instant now);
  void dialFailed(ErrorCode code, std::string text, Instant now) noexcept;
  /// Nobody waits for the first attempt any longer; it goes on.
  void stopWaitingForFirstDial();

  /// The connection has given its first answer.
  void answered() { backoff_ = redialBackoff; }
  /// The connection has ended, for `text`. A server that lets us in, but has answered nothing that it was
  /// asked, is dialled as one that cannot be reached.
  void lost(std::string text, Instant now) noexcept;

  /// Sends commands, that matter to nobody here any more, until the node has done them: now, or when it is
  /// there again. In a long outage the oldest are forgotten.
  void deliver(std::shared_ptr<const std::string> commands, Instant now);
  /// Sends again what is not delivered, unless the node has just refused it.
  void deliverAll(Instant now);
  /// It has refused the commands for a reason that passes: sends them again a little later.
  void deliverLater(std::shared_ptr<const std::string> commands, Instant now);

  // Shared with those that are in a system call on them.
  std::shared_ptr<Connection> connection;
  std::shared_ptr<Dial> dial;

 private:
  void keep(std::shared_ptr<const std::string> commands);

  const std::size_t index_;
  Dialer dialer_;
  Backoff backoff_;
  Instant nextDial_ = Instant::min();
  Instant dialStarted_{};
  bool tried_ = false;
  bool met_ = false;
  bool misconfigured_ = false;
  std::string why_;
  ErrorCode code_ = ErrorCode::storeUnavailable;
  std::string serverRun_;
  std::string server_;
  std::deque<std::shared_ptr<const std::string>> undelivered_;
  Instant nextDelivery_ = Instant::min();
};

}  // namespace lockkeeper::redis
