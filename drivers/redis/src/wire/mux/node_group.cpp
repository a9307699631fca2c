#include "wire/mux/node_group.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

// A connection that was idle for so long is looked at before it is used again: the server may have ended it.
constexpr std::chrono::seconds idleBeforeLook{1};

}  // namespace

/// What the leader polls for a node, and what came of it while nobody held the mutex.
struct NodeGroup::Watched {
  std::size_t node;
  std::shared_ptr<Connection> connection{};  // one of both
  std::shared_ptr<Dial> dial{};
  bool ready = false;      // there was something
  bool connected = false;  // the dial is done
  ErrorCode code = ErrorCode::outcomeUnknown;
  std::string fault{};
};

NodeGroup::NodeGroup(const RedlockOptions& options, const Environment& environment)
    : environment_(environment),
      clock_(*environment_.clock),
      ioTimeout_(options.nodes.front().ioTimeout),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  const RestartGuard guard(options.restartGuard, options.appendFsyncAlways);
  for (const RedisOptions& node : options.nodes) nodes_.emplace_back(node, environment_, guard);
}

NodeGroup::~NodeGroup() { ::close(wake_); }

void NodeGroup::ask(Round& round, std::chrono::nanoseconds patience, Instant deadline) {
  Lock lock(mutex_);
  round.startedAt = clock_.now();
  lookAround(lock);
  if (round.needsQuorum) reach(lock, round, patience, deadline);
  const Instant until = std::min(saturatingAdd(clock_.now(), patience), deadline);
  send(round, until);
  flush(lock);
  wait(lock, round, until, [&] { return round.over(); });
  close(round);
  flush(lock);
  passOn(lock);
}

void NodeGroup::tell(std::size_t node, const Request& wire) {
  Lock lock(mutex_);
  if (!nodes_[node].ready()) return;
  const Instant now = clock_.now();
  nodes_[node].connection->add(nullptr, wire.commands(), wire.size(), now, saturatingAdd(now, ioTimeout_));
  flush(lock);
}

void NodeGroup::disconnect(std::size_t node, const std::string& why) {
  Lock lock(mutex_);
  if (nodes_[node].ready()) end(lock, nodes_[node], ErrorCode::outcomeUnknown, why);
}

bool NodeGroup::mayVote(std::size_t node) {
  Lock lock(mutex_);
  return nodes_[node].mayVote(clock_.now());
}

// Nobody polls between rounds, so what has come since then is taken in before any node is judged by it.
void NodeGroup::lookAround(Lock& lock) {
  const Instant before = clock_.now();
  const auto worthALook = [&](const Node& node) {
    return node.dialing() || node.silent(before) ||
           (node.ready() && (before - node.connection->lastUse > idleBeforeLook ||
                             node.connection->isLate(before - ioTimeout_)));
  };
  if (!leading_ && std::any_of(nodes_.begin(), nodes_.end(), worthALook)) {
    leading_ = true;
    turn(lock, before);
    leading_ = false;
  }
  const Instant now = clock_.now();
  bool begun = false;
  for (Node& node : nodes_) {
    if (node.ready() && node.connection->isLate(now - ioTimeout_)) {
      end(lock, node, ErrorCode::outcomeUnknown, "no reply within the I/O timeout");
    }
    begun |= node.startDial(now);
  }
  if (begun) interruptLeader();
}

void NodeGroup::reach(Lock& lock, Round& round, std::chrono::nanoseconds patience, Instant deadline) {
  const Instant now = clock_.now();
  // Half of the time at most, lest nothing be left for the question itself.
  const auto length = std::min<std::chrono::nanoseconds>(patience, (deadline - now) / 2);
  wait(lock, round, saturatingAdd(now, length), [&] { return !worthWaiting(round); });
  for (Node& node : nodes_) {
    node.stopWaitingForFirstDial();
    if (!node.mistaken()) continue;
    passOn(lock);
    throw ConfigError(node.why());
  }
}

bool NodeGroup::worthWaiting(const Round& round) const {
  const Instant now = clock_.now();
  std::size_t there = 0;
  std::size_t dialing = 0;
  bool first = false;
  for (const Node& node : nodes_) {
    there += node.ready() && (!round.takesVotes || node.mayVote(now));
    dialing += node.dialing();
    first = first || (node.dialing() && node.untried());
  }
  return first || (there < quorum() && dialing > 0);
}

void NodeGroup::send(Round& round, Instant dueAt) {
  const Instant now = clock_.now();
  round.sentAt = now;
  std::size_t answering = 0;
  std::size_t voting = 0;
  for (const Node& node : nodes_) {
    const bool votes = node.ready() && (!round.takesVotes || node.mayVote(now));
    voting += votes;
    answering += votes && !node.silent(now);
  }
  const bool enough = now < dueAt && (!round.takesVotes || voting >= quorum());
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    if (!round.invited[index]) continue;
    Node& node = nodes_[index];
    Round::Seat& seat = round.seats[index];
    if (!node.ready()) {
      seat.why = node.why();
      seat.code = node.code();
    } else if (round.takesVotes && !node.mayVote(now)) {
      const auto wait = std::chrono::ceil<std::chrono::seconds>(node.guard.votesFrom() - now);
      seat.why = node.store() + " has restarted and votes in " + std::to_string(wait.count()) + "s";
    } else if (node.silent(now) && answering >= quorum()) {
      seat.why = node.store() + " did not answer in time";
    } else if (enough) {
      seat.ballot = std::make_unique<Ballot>(&round, round.wire.size());
      seat.state = Round::State::asked;
      node.connection->add(seat.ballot.get(), round.wire.commands(), round.wire.size(), now, dueAt);
    }
  }
}

// Nothing may refer to the round any more.
void NodeGroup::close(Round& round) {
  const Instant now = clock_.now();
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    if (!round.invited[index]) continue;
    Node& node = nodes_[index];
    Round::Seat& seat = round.seats[index];
    if (seat.state == Round::State::asked && seat.ballot->finished()) {
      seat.state = seat.ballot->failure() ? Round::State::failed : Round::State::answered;
      seat.why = seat.ballot->failureText();
      seat.code = seat.ballot->failure().value_or(seat.code);
    } else if (seat.state == Round::State::asked) {
      seat.state = Round::State::unanswered;
      seat.why = node.store() + " did not answer in time";
      if (round.mustArrive) {
        node.owe(round.wire.commands(), std::move(seat.ballot));
      } else {
        node.connection->forget(*seat.ballot);
      }
    }
    if (round.mustArrive && (seat.state == Round::State::failed || seat.state == Round::State::leftOut)) {
      node.owe(round.wire.commands(), now);
    }
  }
}

template <class Done>
void NodeGroup::wait(Lock& lock, Round& round, Instant until, Done done) {
  while (!done()) {
    if (!leading_) {
      leading_ = true;
      do {
        turn(lock, until);
      } while (!done() && clock_.now() < until);
      leading_ = false;
    } else {
      sleep(lock, round, until);
    }
    if (clock_.now() >= until) return;
  }
}

void NodeGroup::sleep(Lock& lock, Round& round, Instant until) {
  std::condition_variable& waker = wakers_.take();
  round.waker = &waker;
  sleeping_.push_back(&round);
  clock_.wait(lock.forWaiting(), waker, until);
  std::erase(sleeping_, &round);
  round.waker = nullptr;
  wakers_.giveBack(waker);
}

// Who leaves must not leave others without a leader. The one who has to wait longest leads next.
void NodeGroup::passOn(Lock& lock) {
  if (!leading_ && !sleeping_.empty()) lock.wake(*sleeping_.back()->waker);
}

/// One poll of all connections, of those in the making too, and what comes of it.
void NodeGroup::turn(Lock& lock, Instant until) {
  watchAll();
  const bool fresh =
      std::any_of(polled_.begin() + 1, polled_.end(), [](const pollfd& each) { return each.fd < 0; });
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock_.now()).count();
  const int timeout = fresh ? 0 : static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
  lock.unlock();
  if (::poll(polled_.data(), polled_.size(), timeout) >= 0) {
    if (polled_[0].revents != 0) {
      std::uint64_t count = 0;
      (void)!::read(wake_, &count, sizeof count);
    }
    for (std::size_t index = 0; index < watched_.size(); ++index) {
      const pollfd& polled = polled_[index + 1];
      if (polled.fd < 0 || polled.revents != 0) use(watched_[index]);
    }
  }
  lock.lock();
  for (Watched& each : watched_) apply(lock, each);
  watched_.clear();
  flush(lock);
}

void NodeGroup::watchAll() {
  watched_.clear();
  polled_.assign(1, {wake_, POLLIN, 0});
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    const Node& node = nodes_[index];
    if (node.connection) {
      pollfd event = node.connection->stream->toReceive();
      if (node.blocked)
        event.events = static_cast<short>(event.events | node.connection->stream->toSend().events);
      polled_.push_back(event);
      watched_.push_back({.node = index, .connection = node.connection});
    } else if (node.dial) {
      polled_.push_back(node.dial->awaited());
      watched_.push_back({.node = index, .dial = node.dial, .code = ErrorCode::storeUnavailable});
    }
  }
}

// Outside the mutex: system calls, and listeners that are told of a new connection.
void NodeGroup::use(Watched& watched) {
  watched.ready = true;
  try {
    if (watched.dial) {
      watched.connected = watched.dial->advance();
      return;
    }
    Connection& connection = *watched.connection;
    std::size_t received = 0;
    do {
      received = connection.stream->receive(connection.reader.room());
      connection.reader.filled(received);
    } while (received > 0 && connection.stream->secure());
  } catch (const Error& fault) {
    watched.code = fault.code();
    watched.fault = fault.what();
  } catch (const std::exception& fault) {
    watched.fault = fault.what();
  }
}

void NodeGroup::apply(Lock& lock, Watched& watched) {
  Node& node = nodes_[watched.node];
  if (watched.dial) return applyDial(lock, node, watched);
  if (!watched.ready || watched.connection->ended) return;
  node.blocked = false;
  deliver(lock, node);
  if (!watched.fault.empty() && node.ready()) end(lock, node, watched.code, watched.fault);
}

void NodeGroup::deliver(Lock& lock, Node& node) {
  const Instant now = clock_.now();
  node.lastHeard = now;
  try {
    while (Request* const request = node.connection->nextAnswered()) {
      auto& ballot = static_cast<Ballot&>(*request);
      ballot.answeredAt = now;
      if (ballot.round == nullptr) {
        node.paid(ballot);
      } else if (ballot.round->waker != nullptr && ballot.round->over()) {
        lock.wake(*ballot.round->waker);
      }
    }
  } catch (const ProtocolError& fault) {
    end(lock, node, ErrorCode::protocol, fault.what());
  }
}

void NodeGroup::applyDial(Lock& lock, Node& node, Watched& watched) {
  if (node.dial != watched.dial) return;
  const Instant now = clock_.now();
  if (watched.connected) {
    if (const Node* const other = sameServer(node)) {
      node.dialFailed(ErrorCode::config,
                      node.store() + " is the same server as " + other->store() +
                          ": every vote needs a server of its own",
                      now);
    } else {
      node.dialSucceeded(now);
    }
  } else if (!watched.fault.empty()) {
    node.dialFailed(watched.code, watched.fault, now);
  } else if (watched.ready) {
    return node.dialGoesOn(now);
  } else if (node.dialIsLate(now)) {
    node.dialFailed(ErrorCode::storeUnavailable, node.dial->timeoutText(), now);
  } else {
    return;
  }
  for (const Round* const each : sleeping_) lock.wake(*each->waker);
}

const Node* NodeGroup::sameServer(const Node& node) const {
  const std::string& runId = node.dial->facts().runId;
  const auto same = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& other) {
    return &other != &node && !runId.empty() && other.guard.runId() == runId;
  });
  return same == nodes_.end() ? nullptr : &*same;
}

void NodeGroup::end(Lock& lock, Node& node, ErrorCode code, const std::string& why) {
  const std::shared_ptr<Connection> connection = node.connection;
  const std::string text = node.store() + ": " + why;
  connection->end(code, text, [&](Request& request) {
    auto& ballot = static_cast<Ballot&>(request);
    if (ballot.round == nullptr) {
      node.unpaid(ballot);
    } else if (ballot.round->waker != nullptr && ballot.round->over()) {
      lock.wake(*ballot.round->waker);
    }
  });
  node.lost(code, text);
}

void NodeGroup::flush(Lock& lock) {
  if (flushing_) return;
  flushing_ = true;
  while (takeOutput()) {
    lock.unlock();
    for (Watched& each : flushed_) {
      std::string& bytes = each.connection->sending;
      try {
        const std::size_t sent = each.connection->stream->send(bytes);
        bytes.erase(0, sent);
      } catch (const std::exception& fault) {
        each.fault = fault.what();
      }
    }
    lock.lock();
    for (const Watched& each : flushed_) {
      if (each.connection->ended) continue;
      Node& node = nodes_[each.node];
      if (!each.fault.empty()) {
        end(lock, node, ErrorCode::outcomeUnknown, each.fault);
      } else if (!each.connection->sending.empty()) {
        node.blocked = true;
        interruptLeader();
      }
    }
  }
  flushed_.clear();
  flushing_ = false;
}

bool NodeGroup::takeOutput() {
  flushed_.clear();
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    const Node& node = nodes_[index];
    if (!node.connection || node.blocked) continue;
    if (node.connection->sending.empty() && !node.connection->out.empty()) node.connection->takeOut();
    if (!node.connection->sending.empty()) flushed_.push_back({.node = index, .connection = node.connection});
  }
  return !flushed_.empty();
}

void NodeGroup::interruptLeader() const {
  const std::uint64_t one = 1;
  if (leading_) (void)!::write(wake_, &one, sizeof one);
}

}  // namespace lockkeeper::redis
