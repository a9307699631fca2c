#include "wire/mux/node_group.h"

#include <algorithm>
#include <new>
#include <utility>

namespace lockkeeper::redis {

namespace {

// A connection that was idle for so long is checked before it is used again: the server may have ended it.
constexpr std::chrono::seconds idleBeforeCheck{1};

// Beyond that, their callers wait.
constexpr std::uint64_t mostPosted = 1024;

/// True as long as it lives.
class Flag {
 public:
  explicit Flag(bool& flag) : flag_(flag) { flag_ = true; }
  Flag(const Flag&) = delete;
  ~Flag() { flag_ = false; }

 private:
  bool& flag_;
};

// Where there is no memory for the text, it is left out.
void copyText(std::string_view from, std::string& to) noexcept {
  try {
    to = from;
  } catch (const std::bad_alloc&) {
    to.clear();
  }
}

}  // namespace

/// A connection, or one that is being made, and what came of it while nobody held the mutex.
struct NodeGroup::Watched {
  std::size_t node;
  std::shared_ptr<Connection> connection{};  // one of both
  std::shared_ptr<Dial> dial{};
  bool used = false;
  bool connected = false;     // the dial is done
  bool failed = false;        // with `code`, and `fault` if there was memory for it
  std::size_t sentBytes = 0;  // to the connection
  ErrorCode code = ErrorCode::outcomeUnknown;
  std::string fault{};

  // System calls, and listeners that are told of a new connection: without the mutex.
  template <class Io>
  void use(Io io) {
    used = true;
    try {
      io();
    } catch (const Error& error) {
      failed = true;
      code = error.code();
      copyText(error.what(), fault);
    } catch (const std::exception& error) {
      failed = true;
      copyText(error.what(), fault);
    }
  }

  void receive(Instant now) {
    if (dial) {
      connected = dial->advance(now);
      return;
    }
    receiveAll(*connection->stream, connection->reader);
  }
};

NodeGroup::Lock::~Lock() {
  if (!owns()) lock();
  PostedList finished(std::move(group_.finishedPosted_));
  unlock();
  while (const auto posted = finished.pop()) posted->ended();
}

NodeGroup::NodeGroup(const std::vector<RedisOptions>& nodes, const Environment& environment, Admit admit,
                     const DialRules& rules)
    : clock_(*environment.clock),
      admit_(std::move(admit)),
      ioTimeout_(nodes.front().ioTimeout),
      poll_(clock_) {
  for (const RedisOptions& node : nodes) nodes_.emplace_back(nodes_.size(), node, environment, rules);
}

NodeGroup::~NodeGroup() = default;

Instant NodeGroup::catchUp(Lock& lock, Instant now) {
  const auto mustBeRead = [&](const Node& node) {
    return node.dialing() || node.silent(now) ||
           (node.ready() &&
            (now - node.connection->lastUse > idleBeforeCheck || node.connection->lateAt(ioTimeout_) <= now));
  };
  if (!poll_.polling() && std::any_of(nodes_.begin(), nodes_.end(), mustBeRead)) {
    SharedPoll::Waiter self;
    wait(lock, self, now, [] { return false; });
    now = clock_.now();
  }
  bool begun = false;
  for (Node& node : nodes_) {
    node.deliverAll(now);
    begun |= node.startDial(now);
  }
  if (begun) poll_.interrupt();
  return now;
}

// The time in which nobody has polled does not count as that of a dial.
void NodeGroup::resumeDials() {
  for (Node& node : nodes_) {
    if (node.dialing()) node.dialGoesOn(polledUntil_, clock_.now());
  }
}

// One poll of all connections, of those that are being made too, and what comes of it. Returns when it was
// over.
Instant NodeGroup::pollOnce(Lock& lock, Instant until) {
  until = std::min(until, watchAll());
  lock.unlock();
  poll_.poll(polled_, until);
  const Instant now = clock_.now();
  for (std::size_t index = 0; index < watched_.size(); ++index) {
    const pollfd& event = polled_[index + 1];
    Watched& watched = watched_[index];
    const bool due = watched.dial && watched.dial->actBy() <= now;
    if (event.fd < 0 || event.revents != 0 || due) watched.use([&] { watched.receive(now); });
  }
  lock.lock();
  for (Watched& each : watched_) take(each, now);
  watched_.clear();
  return polledUntil_ = now;
}

// Returns until when nothing has to be done unless there is something to read.
Instant NodeGroup::watchAll() {
  Instant until = Instant::max();
  watched_.clear();
  polled_.resize(1);
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    const Node& node = nodes_[index];
    if (node.connection) {
      pollfd event = node.connection->stream->toReceive();
      if (node.connection->blocked)
        event.events = static_cast<short>(event.events | node.connection->stream->toSend().events);
      polled_.push_back(event);
      watched_.push_back({.node = index, .connection = node.connection});
      until = std::min(until, node.connection->lateAt(ioTimeout_));
    } else if (node.dial) {
      polled_.push_back(node.dial->awaited());
      watched_.push_back({.node = index, .dial = node.dial, .code = ErrorCode::storeUnavailable});
      // One that has nothing to wait for yet begins at once.
      until = std::min(until, polled_.back().fd < 0 ? Instant::min() : node.dial->actBy());
    }
  }
  return until;
}

// Does not throw, since nobody would get what other nodes have sent.
void NodeGroup::take(Watched& watched, Instant now) noexcept {
  Node& node = nodes_[watched.node];
  if (watched.dial) {
    try {
      return takeDial(node, watched);
    } catch (const std::exception&) {
      node.dialFailed(ErrorCode::storeUnavailable, {}, now);  // no memory for it
      return poll_.wakeAll();
    }
  }
  if (watched.connection->disconnected) return;
  if (watched.used) {
    watched.connection->blocked = false;
    takeReplies(node, now);
    if (watched.failed && node.ready()) disconnect(node, watched.code, watched.fault);
  }
  if (!node.ready() || node.connection->lateAt(ioTimeout_) > now) return;
  disconnect(node, ErrorCode::outcomeUnknown, "no reply within the I/O timeout");
}

void NodeGroup::takeDial(Node& node, Watched& watched) {
  const Instant now = clock_.now();
  if (watched.connected) {
    const std::string refusal = admit_ ? admit_(watched.node, node.dial->facts(), now) : std::string();
    if (refusal.empty()) {
      node.dialSucceeded(++connections_, now);
    } else {
      node.dialFailed(ErrorCode::config, refusal, now);
    }
  } else if (watched.failed) {
    node.dialFailed(watched.code, watched.fault, now);
  } else {
    return;
  }
  poll_.wakeAll();
}

void NodeGroup::takeReplies(Node& node, Instant now) {
  Connection& connection = *node.connection;
  try {
    while (auto commands = connection.nextAnswered(now)) {
      if (!std::exchange(connection.answered, true)) node.answered();
      if (commands->posted) {
        commands->posted->complete = true;
        finish(std::move(commands->posted));
        continue;
      }
      if (commands->request == nullptr) {
        if (commands->mustArrive && commands->refused) node.deliverLater(commands->mustArrive, now);
        continue;
      }
      Answer& answer = commands->request->answers_[connection.node];
      answer.receivedAt = now;
      finish(*commands->request, answer, Answer::State::complete);
    }
  } catch (const ProtocolError& fault) {
    return disconnect(node, ErrorCode::protocol, fault.what());
  } catch (const std::bad_alloc&) {
    return disconnect(node, ErrorCode::outcomeUnknown, "no memory for a reply");
  }
  // The next connection may lead to the server that has taken over.
  if (connection.notMaster) {
    disconnect(node, ErrorCode::outcomeUnknown, "the server is not the master any more");
  }
}

void NodeGroup::disconnect(Node& node, ErrorCode code, std::string_view why) noexcept {
  const std::shared_ptr<Connection> connection = node.connection;
  std::string text;
  try {
    text.append(node.store()).append(": ").append(why);
  } catch (const std::bad_alloc&) {
    // It ends without a text.
  }
  connection->disconnected = true;
  connection->stream->shutdown();
  for (Connection::Pending& each : connection->pending) {
    const ErrorCode eachCode = each.sent ? code : ErrorCode::storeUnavailable;
    if (each.posted) {
      each.posted->code = eachCode;
      copyText(text, each.posted->why);
      finish(std::move(each.posted));
    }
    if (each.request == nullptr) continue;
    Answer& answer = each.request->answers_[connection->node];
    answer.code = eachCode;
    copyText(text, answer.why);
    finish(*each.request, answer, Answer::State::failed);
  }
  node.lost(std::move(text), clock_.now());
}

void NodeGroup::finish(Request& request, Answer& answer, Answer::State state) {
  answer.state = state;
  --request.waiting_;
  try {
    if (!request.over()) return;
  } catch (const std::bad_alloc&) {
    // Its caller wakes up and asks again.
  }
  poll_.wake(request.waiter_);
}

void NodeGroup::finish(std::unique_ptr<Posted> posted) {
  ++postedFinished_;
  finishedPosted_.push(std::move(posted));
  for (SharedPoll::Waiter* const each : awaitingPosted_) poll_.wake(*each);
}

bool NodeGroup::post(const Request& request, std::unique_ptr<Posted> posted, Instant now) {
  if (posted_ - postedFinished_ == mostPosted) return false;
  Connection& connection = *nodes_.front().connection;
  posted->connection = connection.number;
  connection.add({.request = nullptr,
                  .posted = std::move(posted),
                  .replies = 1,
                  .dueAt = saturatingAdd(now, ioTimeout_)},
                 request.commands(), now);
  ++posted_;
  return true;
}

void NodeGroup::awaitPosted(Lock& lock, Instant deadline) {
  SharedPoll::Waiter self;
  awaitingPosted_.push_back(&self);
  try {
    wait(lock, self, deadline, [&, last = posted_] { return postedFinished_ >= last; });
  } catch (...) {
    std::erase(awaitingPosted_, &self);
    throw;
  }
  std::erase(awaitingPosted_, &self);
}

// The thread that polls writes whenever it has read. Where a reply is due, it does so soon, and the server
// would not come to more commands before that reply: they go together with others.
void NodeGroup::flushUnlessPollerWill(Lock& lock) {
  const auto mustGo = [](const Node& node) {
    return node.ready() && node.connection->hasOutput() && !node.connection->replyIsDue();
  };
  if (!poll_.polling() || std::any_of(nodes_.begin(), nodes_.end(), mustGo)) flush(lock);
}

void NodeGroup::flush(Lock& lock, const Request* own) {
  if (flushing_) return;
  const Flag flushing(flushing_);
  while (takeOutput()) {
    lock.unlock();
    for (Watched& each : flushed_) each.use([&] { each.sentBytes = each.connection->sendSome(); });
    lock.lock();
    for (const Watched& each : flushed_) {
      Connection& connection = *each.connection;
      if (connection.disconnected) continue;
      if (each.failed) {
        disconnect(nodes_[each.node], ErrorCode::outcomeUnknown, each.fault);
        continue;
      }
      connection.sent(each.sentBytes);
      if (connection.blocked) poll_.interrupt();
    }
    if (own != nullptr && poll_.polling() && own->over()) {
      poll_.interrupt();
      break;
    }
  }
  flushed_.clear();
}

bool NodeGroup::takeOutput() {
  flushed_.clear();
  std::optional<Instant> now;  // most calls find nothing to send, and reading the clock costs
  for (const Node& node : nodes_) {
    const std::shared_ptr<Connection>& connection = node.connection;
    if (!connection || connection->blocked || !connection->hasOutput()) continue;
    if (!now) now = clock_.now();
    connection->takeOut(*now);
    flushed_.push_back({.node = connection->node, .connection = connection});
  }
  return !flushed_.empty();
}

}  // namespace lockkeeper::redis
