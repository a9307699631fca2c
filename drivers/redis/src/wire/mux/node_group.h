#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lockkeeper/environment.h"
#include "lockkeeper/redis/redlock_options.h"
#include "wire/mux/node.h"
#include "wire/mux/round.h"
#include "wire/mux/waking_lock.h"

namespace lockkeeper::redis {

/// One connection to each of several servers, shared by all threads, with no thread behind it: of the callers
/// that wait, one writes what all of them have added and one, the leader, polls all connections at once and
/// hands out the replies. When it has its own it passes the role on. Connecting goes on in the same poll, so
/// that no server can hold up another one.
class NodeGroup {
 public:
  NodeGroup(const RedlockOptions& options, const Environment& environment);
  NodeGroup(const NodeGroup&) = delete;
  NodeGroup& operator=(const NodeGroup&) = delete;
  ~NodeGroup();

  std::size_t size() const { return nodes_.size(); }
  std::size_t quorum() const { return nodes_.size() / 2 + 1; }
  const std::string& store(std::size_t node) const { return nodes_[node].store(); }

  /// Asks the nodes that are there, and waits for their answers until the round is over: `patience` at most,
  /// and once as much, before anything is sent, for connections without which there is no quorum or whose
  /// first attempt runs yet. Throws ConfigError, with nothing sent, when a node says at our first attempt
  /// that it is set up wrongly. Faults of nodes are in the seats.
  void ask(Round& round, std::chrono::nanoseconds patience, Instant deadline);

  /// Sends commands with one reply each to one node, if it is there. Nobody gets the replies.
  void tell(std::size_t node, const Request& wire);

  /// Ends a connection, since the server behind it is not what we need.
  void disconnect(std::size_t node, const std::string& why);

  /// Whether a node may vote by now.
  bool mayVote(std::size_t node);

 private:
  using Lock = WakingLock;
  struct Watched;

  void lookAround(Lock& lock);
  void reach(Lock& lock, Round& round, std::chrono::nanoseconds patience, Instant deadline);
  bool worthWaiting(const Round& round) const;
  void send(Round& round, Instant dueAt);
  void close(Round& round);
  template <class Done>
  void wait(Lock& lock, Round& round, Instant until, Done done);
  void sleep(Lock& lock, Round& round, Instant until);
  void passOn(Lock& lock);

  void turn(Lock& lock, Instant until);
  void watchAll();
  static void use(Watched& watched);
  void apply(Lock& lock, Watched& watched);
  void deliver(Lock& lock, Node& node);
  void applyDial(Lock& lock, Node& node, Watched& watched);
  const Node* sameServer(const Node& node) const;
  void end(Lock& lock, Node& node, ErrorCode code, const std::string& why);
  void flush(Lock& lock);
  bool takeOutput();
  void interruptLeader() const;

  const Environment environment_;
  Clock& clock_;
  const std::chrono::milliseconds ioTimeout_;
  int wake_;  // readable: the leader must look again at what to poll

  std::mutex mutex_;
  WakerPool wakers_;
  std::deque<Node> nodes_;
  std::vector<Round*> sleeping_;

  bool leading_ = false;
  std::vector<Watched> watched_;  // the leader's, with polled_
  std::vector<pollfd> polled_;
  bool flushing_ = false;
  std::vector<Watched> flushed_;  // the flusher's
};

}  // namespace lockkeeper::redis
