#pragma once

#include <deque>
#include <memory>
#include <string>

#include "wire/dial/connect_backoff.h"
#include "wire/dial/connector.h"
#include "wire/dial/dial.h"
#include "wire/mux/connection.h"
#include "wire/mux/restart_guard.h"
#include "wire/mux/round.h"

namespace lockkeeper::redis {

/// One server of a NodeGroup, guarded by its mutex.
class Node {
 public:
  Node(const RedisOptions& options, const Environment& environment, RestartGuard restartGuard);

  const std::string& store() const { return connector_.store(); }

  /// Ready for commands.
  bool ready() const { return connection != nullptr; }
  /// An answer is overdue: whether it is alive shows when it has come.
  bool silent(Instant now) const;
  bool mayVote(Instant now) const { return guard.votesFrom() <= now; }
  /// Has not told yet whether it can be reached.
  bool untried() const { return !tried_; }
  bool dialing() const { return dial != nullptr; }
  /// A mistake in the set-up, by what it said to our first attempt.
  bool mistaken() const { return mistaken_; }
  /// Why it is not connected.
  const std::string& why() const { return why_; }
  ErrorCode code() const { return code_; }

  /// Begins to connect, unless it is connected or connecting, or the next attempt is not due. True: begun.
  bool startDial(Instant now);
  /// There is progress, so the dial gets its time anew.
  void dialGoesOn(Instant now);
  bool dialIsLate(Instant now) const { return now >= dialUntil_; }
  void dialSucceeded(Instant now);
  void dialFailed(ErrorCode code, const std::string& text, Instant now);
  /// Nobody waits for the first attempt any longer; it goes on.
  void stopWaitingForFirstDial();
  /// The connection has ended.
  void lost(ErrorCode code, const std::string& text);

  /// Sends commands with one reply that matter to nobody here any more, at once or when it is there again.
  void owe(const std::string& commands, Instant now);
  /// Likewise for what was sent already, as `ballot`.
  void owe(const std::string& commands, std::unique_ptr<Ballot> ballot);
  /// The answer to something that was owed has come, or will not.
  void paid(const Ballot& ballot);
  void unpaid(const Ballot& ballot);

  std::shared_ptr<Connection> connection;  // shared with those that are in a system call on it
  std::shared_ptr<Dial> dial;              // likewise
  RestartGuard guard;
  Instant lastHeard{};
  bool blocked = false;  // the socket takes no more for now

 private:
  struct Debt {
    std::string commands;
    std::unique_ptr<Ballot> ballot;  // while it is on its way
  };
  void send(Debt& debt, Instant now);
  void makeRoom();
  std::deque<Debt>::iterator find(const Ballot& ballot);

  Connector connector_;
  ConnectBackoff backoff_;
  Instant dialUntil_{};
  bool tried_ = false;
  bool met_ = false;
  bool mistaken_ = false;
  std::string why_;
  ErrorCode code_ = ErrorCode::storeUnavailable;
  std::deque<Debt> debts_;
};

}  // namespace lockkeeper::redis
