#include "wire/mux/multiplexer.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

// A connection that was idle for so long is looked at before it is used again: the server may have ended it.
constexpr std::chrono::seconds idleBeforeLook{1};

const AskRules& oneNode = *new AskRules();

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

// Words are left out where there is no memory for them.
void copyWords(std::string_view from, std::string& to) noexcept {
  try {
    to = from;
  } catch (const std::bad_alloc&) {
    to.clear();
  }
}

}  // namespace

/// A connection, or one in the making, and what came of it while nobody held the mutex.
struct Multiplexer::Watched {
  std::size_t node;
  std::shared_ptr<Connection> connection{};  // one of both
  std::shared_ptr<Dial> dial{};
  bool used = false;
  bool connected = false;     // the dial is done
  bool failed = false;        // with `code`, and `fault` if there was memory for it
  std::size_t sentBytes = 0;  // to the connection
  ErrorCode code = ErrorCode::outcomeUnknown;
  std::string fault{};
};

/// Whoever leaves must not leave others without a leader, also when an exception ends the call.
class Multiplexer::Leaving {
 public:
  Leaving(Multiplexer& all, Lock& lock) : all_(all), lock_(lock) {}
  Leaving(const Leaving&) = delete;
  ~Leaving() { all_.passOn(lock_); }

 private:
  Multiplexer& all_;
  Lock& lock_;
};

Multiplexer::Multiplexer(const std::vector<RedisOptions>& nodes, const Environment& environment, Admit admit,
                         const DialRules& rules)
    : environment_(environment),
      clock_(*environment_.clock),
      admit_(std::move(admit)),
      ioTimeout_(nodes.front().ioTimeout),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  for (const RedisOptions& node : nodes) nodes_.emplace_back(nodes_.size(), node, environment_, rules);
}

Multiplexer::~Multiplexer() { ::close(wake_); }

void Multiplexer::execute(Request& request, Instant deadline) {
  ask(request, oneNode, deadline);
  throwUnlessComplete(request.answers_.front());
}

void Multiplexer::start(Request& request, Instant deadline) {
  Lock lock(mutex_);
  const Leaving leaving(*this, lock);
  try {
    (void)begin(lock, request, oneNode, deadline);
  } catch (...) {
    abandon(request);
    throw;
  }
}

void Multiplexer::finish(Request& request, Instant deadline) {
  Lock lock(mutex_);
  const Leaving leaving(*this, lock);
  try {
    complete(lock, request, oneNode, deadline);
  } catch (...) {
    abandon(request);
    throw;
  }
  throwUnlessComplete(request.answers_.front());
}

void Multiplexer::throwUnlessComplete(const Answer& answer) {
  if (!answer.complete()) throwError(answer.code, answer.why);
}

void Multiplexer::ask(Request& request, const AskRules& rules, Instant deadline) {
  Lock lock(mutex_);
  const Leaving leaving(*this, lock);
  try {
    complete(lock, request, rules, begin(lock, request, rules, deadline));
  } catch (...) {
    abandon(request);
    throw;
  }
}

// Of a call that an exception ends: nothing refers to the request any more.
void Multiplexer::abandon(Request& request) noexcept {
  for (const Node& node : nodes_) {
    if (node.ready()) node.connection->forget(request, false);
  }
  request.waiting_ = 0;
  request.enough_ = nullptr;
}

// Returns until when to wait for answers.
Instant Multiplexer::begin(Lock& lock, Request& request, const AskRules& rules, Instant deadline) {
  Instant now = clock_.now();
  request.startedAt_ = now;
  request.waiting_ = 0;
  request.enough_ = &rules.enough;
  now = catchUp(lock, now);
  if (rules.needed > 0) now = reach(lock, request, rules, deadline, now);
  const Instant until = std::min(saturatingAdd(now, rules.patience), deadline);
  send(request, rules, until, now);
  flush(lock, &request);
  return until;
}

void Multiplexer::complete(Lock& lock, Request& request, const AskRules& rules, Instant until) {
  wait(lock, request, until, [&] { return request.over(); });
  close(request, rules);
  flush(lock, &request);
}

void Multiplexer::tell(std::size_t node, const Request& request) {
  Lock lock(mutex_);
  if (!nodes_[node].ready()) return;
  const Instant now = clock_.now();
  nodes_[node].connection->add(
      {.request = nullptr, .replies = request.size(), .dueAt = saturatingAdd(now, ioTimeout_)},
      request.commands(), now);
  flush(lock);
}

bool Multiplexer::post(const Request& request, std::unique_ptr<Posted> posted, std::uint64_t connection) {
  Lock lock(mutex_);
  const Leaving leaving(*this, lock);
  const Instant now = catchUp(lock, clock_.now());
  Node& node = nodes_.front();
  const bool possible = node.ready() && (connection == 0 || connection == node.connection->number) &&
                        !silent(node, now) && posted_ - postedEnded_ < mostPosted;
  if (possible) {
    posted->connection = node.connection->number;
    node.connection->add({.request = nullptr,
                          .posted = std::move(posted),
                          .replies = 1,
                          .dueAt = saturatingAdd(now, ioTimeout_)},
                         request.commands(), now);
    ++posted_;
    flushUnlessLeaderWill(lock);
  }
  return possible;
}

void Multiplexer::awaitPosted(Instant deadline) {
  Request nothing(nodes_.size());
  Lock lock(mutex_);
  const Leaving leaving(*this, lock);
  ++awaitingPosted_;
  try {
    wait(lock, nothing, deadline, [&, last = posted_] { return postedEnded_ >= last; });
  } catch (...) {
    --awaitingPosted_;
    throw;
  }
  --awaitingPosted_;
  // What was left to this leader to write.
  flush(lock);
}

void Multiplexer::disconnect(std::size_t node, std::uint64_t connection, const std::string& why) {
  Lock lock(mutex_);
  Node& named = nodes_[node];
  if (named.ready() && named.connection->number == connection) {
    end(lock, named, ErrorCode::outcomeUnknown, why);
  }
}

bool Multiplexer::leaveUnless(const std::string& server, const std::string& why, std::size_t node) {
  Lock lock(mutex_);
  Node& named = nodes_[node];
  if (!named.ready() || named.server() == server) return false;
  end(lock, named, ErrorCode::outcomeUnknown, why);
  return true;
}

std::string Multiplexer::serverRun(std::uint64_t connection, std::size_t node) {
  const Lock lock(mutex_);
  const Node& named = nodes_[node];
  return named.ready() && named.connection->number == connection ? named.serverRun() : std::string();
}

// Nobody polls between calls, so what has come since then is taken in before any node is judged by it.
Instant Multiplexer::catchUp(Lock& lock, Instant now) {
  const auto worthALook = [&](const Node& node) {
    return node.dialing() || node.silent(now) ||
           (node.ready() &&
            (now - node.connection->lastUse > idleBeforeLook || node.connection->lateAt(ioTimeout_) <= now));
  };
  if (!leading_ && std::any_of(nodes_.begin(), nodes_.end(), worthALook)) {
    lead(lock, now, [] { return false; });
    now = clock_.now();
  }
  bool begun = false;
  for (Node& node : nodes_) {
    node.deliverAll(now);
    begun |= node.startDial(now);
  }
  if (begun) interruptLeader();
  return now;
}

// Waits for connections, as far as that is worth while.
Instant Multiplexer::reach(Lock& lock, Request& request, const AskRules& rules, Instant deadline,
                           Instant now) {
  if (worthWaiting(rules, now)) {
    // Half of the time at most, lest nothing be left for the question itself.
    const bool limited = rules.patience != AskRules::untilDeadline;
    const auto length = std::min<std::chrono::nanoseconds>(rules.patience, (deadline - now) / 2);
    wait(lock, request, limited ? saturatingAdd(now, length) : deadline,
         [&] { return !worthWaiting(rules, clock_.now()); });
    now = clock_.now();
  }
  std::size_t misconfigured = 0;
  for (Node& node : nodes_) {
    node.stopWaitingForFirstDial();
    if (node.misconfigured() && ++misconfigured > rules.mayBeMisconfigured) throw ConfigError(node.why());
  }
  return now;
}

bool Multiplexer::worthWaiting(const AskRules& rules, Instant now) const {
  std::size_t there = 0;
  std::size_t dialing = 0;
  bool first = false;
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    const Node& node = nodes_[index];
    there += node.ready() && (!rules.unfit || rules.unfit(index, now).empty());
    dialing += node.dialing();
    first = first || (node.dialing() && node.untried());
  }
  return first || (there < rules.needed && dialing > 0);
}

// As far as the leader has read: what came after a pause may lie there until it comes to it.
bool Multiplexer::silent(const Node& node, Instant now) const {
  return node.silent(std::min(now, ledUntil_));
}

void Multiplexer::send(Request& request, const AskRules& rules, Instant dueAt, Instant now) {
  request.sentAt_ = now;
  std::size_t able = 0;
  std::size_t answering = 0;
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    const Node& node = nodes_[index];
    Answer& answer = request.answers_[index];
    answer.state = Answer::State::notAsked;
    answer.code = node.ready() ? ErrorCode::storeUnavailable : node.code();
    answer.why = !node.ready() ? node.why() : rules.unfit ? rules.unfit(index, now) : std::string();
    if (!answer.why.empty()) continue;
    ++able;
    answering += !silent(node, now);
  }
  const bool enough = !rules.allOrNone || able >= rules.needed;
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    if (!rules.nodes.empty() && !rules.nodes[index]) continue;
    Node& node = nodes_[index];
    Answer& answer = request.answers_[index];
    if (!node.ready() || !answer.why.empty()) continue;
    if (now >= dueAt) {
      answer.why = node.store() + ": no time was left to send";
    } else if (silent(node, now) && answering >= std::max<std::size_t>(rules.needed, 1)) {
      answer.why = node.store() + " did not answer in time";
    } else if (enough) {
      answer.state = Answer::State::waiting;
      answer.connection = node.connection->number;
      answer.replies.resize(request.size_);
      ++request.waiting_;
      node.connection->add({.request = &request, .replies = request.size_, .dueAt = dueAt}, request.commands_,
                           now);
    }
  }
}

// Nothing may refer to the request any more.
void Multiplexer::close(Request& request, const AskRules& rules) {
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    if (!rules.nodes.empty() && !rules.nodes[index]) continue;
    leaveBehind(nodes_[index], request, rules, request.answers_[index]);
  }
  request.waiting_ = 0;
  request.enough_ = nullptr;
}

void Multiplexer::leaveBehind(Node& node, Request& request, const AskRules& rules, Answer& answer) {
  if (answer.state == Answer::State::waiting) {
    const bool unsent = node.connection->forget(request, rules.mustArrive);
    answer.state = unsent ? Answer::State::notAsked : Answer::State::late;
    answer.code = unsent ? ErrorCode::storeUnavailable : ErrorCode::outcomeUnknown;
    answer.why = node.store() + " did not answer in time";
    return;
  }
  if (!rules.mustArrive) return;
  const bool refused = answer.complete() && isRefusal(answer.replies.front());
  if (answer.complete() && !refused) return;
  auto commands = std::make_shared<const std::string>(request.commands_);
  if (refused) {
    node.deliverLater(std::move(commands), clock_.now());
  } else {
    node.deliver(std::move(commands), clock_.now());
  }
}

template <class Done>
void Multiplexer::wait(Lock& lock, Request& request, Instant until, Done done) {
  if (done()) return;
  do {
    if (leading_) {
      sleep(lock, request, until);
    } else {
      lead(lock, until, done);
    }
  } while (!done() && clock_.now() < until);
}

template <class Done>
void Multiplexer::lead(Lock& lock, Instant until, Done done) {
  const Flag leading(leading_);
  for (Node& node : nodes_) {
    if (node.dialing()) node.dialGoesOn(ledUntil_, clock_.now());
  }
  do {
    flush(lock);
    if (done()) break;
    ledUntil_ = pollOnce(lock, until);
  } while (!done() && ledUntil_ < until);
}

void Multiplexer::sleep(Lock& lock, Request& request, Instant until) {
  sleeping_.reserve(sleeping_.size() + 1);
  std::condition_variable& waker = wakers_.take();
  request.waker_ = &waker;
  sleeping_.push_back(&request);
  clock_.wait(lock.forWaiting(), waker, until);
  std::erase(sleeping_, &request);
  request.waker_ = nullptr;
  wakers_.recycle(waker);
}

// The one who has to wait longest leads next, so that the role changes hands as seldom as can be.
void Multiplexer::passOn(Lock& lock) {
  if (!leading_ && !sleeping_.empty()) lock.wake(*sleeping_.back()->waker_);
}

// One poll of all connections, of those in the making too, and what comes of it. Returns when it was over.
Instant Multiplexer::pollOnce(Lock& lock, Instant until) {
  until = std::min(until, watchAll());
  const bool fresh =
      std::any_of(polled_.begin() + 1, polled_.end(), [](const pollfd& each) { return each.fd < 0; });
  const Instant began = clock_.now();
  const auto left = until <= began ? 0 : std::chrono::ceil<std::chrono::milliseconds>(until - began).count();
  const int timeout = fresh ? 0 : static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
  lock.unlock();
  const bool polled = ::poll(polled_.data(), polled_.size(), timeout) >= 0;
  const Instant now = clock_.now();
  if (polled) {
    if (polled_[0].revents != 0) {
      std::uint64_t count = 0;
      (void)!::read(wake_, &count, sizeof count);
    }
    for (std::size_t index = 0; index < watched_.size(); ++index) {
      const pollfd& event = polled_[index + 1];
      Watched& watched = watched_[index];
      const bool due = watched.dial && watched.dial->actBy() <= now;
      if (event.fd < 0 || event.revents != 0 || due) use(watched, now);
    }
  }
  lock.lock();
  for (Watched& each : watched_) apply(lock, each, now);
  watched_.clear();
  return now;
}

// Until when nothing has to be done unless there is something.
Instant Multiplexer::watchAll() {
  Instant until = Instant::max();
  watched_.clear();
  polled_.assign(1, {wake_, POLLIN, 0});
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
      until = std::min(until, node.dial->actBy());
    }
  }
  return until;
}

// Outside the mutex: system calls, and listeners that are told of a new connection.
void Multiplexer::use(Watched& watched, Instant now) {
  watched.used = true;
  try {
    if (watched.dial) {
      watched.connected = watched.dial->advance(now);
      return;
    }
    Connection& connection = *watched.connection;
    std::size_t received = 0;
    do {
      received = connection.stream->receive(connection.reader.room());
      connection.reader.filled(received);
    } while (received > 0 && connection.stream->secure());
  } catch (const Error& fault) {
    watched.failed = true;
    watched.code = fault.code();
    copyWords(fault.what(), watched.fault);
  } catch (const std::exception& fault) {
    watched.failed = true;
    copyWords(fault.what(), watched.fault);
  }
}

// Without an exception, which would leave what other nodes have sent to nobody.
void Multiplexer::apply(Lock& lock, Watched& watched, Instant now) noexcept {
  Node& node = nodes_[watched.node];
  if (watched.dial) {
    try {
      return applyDial(lock, node, watched);
    } catch (const std::exception&) {
      return node.dialFailed(ErrorCode::storeUnavailable, {}, now);  // no memory for it
    }
  }
  if (watched.connection->ended) return;
  if (watched.used) {
    watched.connection->blocked = false;
    deliver(lock, node, now);
    if (watched.failed && node.ready()) end(lock, node, watched.code, watched.fault);
  }
  endIfLate(lock, node, now);
}

void Multiplexer::applyDial(Lock& lock, Node& node, Watched& watched) {
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
  for (const Request* const each : sleeping_) lock.wake(*each->waker_);
}

void Multiplexer::deliver(Lock& lock, Node& node, Instant now) {
  Connection& connection = *node.connection;
  try {
    while (auto commands = connection.nextAnswered(now)) {
      if (!std::exchange(connection.answered, true)) node.answered();
      if (commands->posted) {
        commands->posted->complete = true;
        finish(lock, std::move(commands->posted));
        continue;
      }
      if (commands->request == nullptr) {
        if (commands->mustArrive && commands->refused) node.deliverLater(commands->mustArrive, now);
        continue;
      }
      Answer& answer = commands->request->answers_[connection.node];
      answer.receivedAt = now;
      finish(lock, *commands->request, answer, Answer::State::complete);
    }
  } catch (const ProtocolError& fault) {
    return end(lock, node, ErrorCode::protocol, fault.what());
  } catch (const std::bad_alloc&) {
    return end(lock, node, ErrorCode::outcomeUnknown, "no memory for a reply");
  }
  // The next connection may lead to the server that has taken over.
  if (connection.notMaster) {
    end(lock, node, ErrorCode::outcomeUnknown, "the server is not the master any more");
  }
}

void Multiplexer::endIfLate(Lock& lock, Node& node, Instant now) {
  if (!node.ready() || node.connection->lateAt(ioTimeout_) > now) return;
  end(lock, node, ErrorCode::outcomeUnknown, "no reply within the I/O timeout");
}

void Multiplexer::end(Lock& lock, Node& node, ErrorCode code, std::string_view why) noexcept {
  const std::shared_ptr<Connection> connection = node.connection;
  std::string text;
  try {
    text.append(node.store()).append(": ").append(why);
  } catch (const std::bad_alloc&) {
    // It ends without words.
  }
  connection->ended = true;
  connection->stream->shutdown();
  for (Connection::Pending& each : connection->pending) {
    const ErrorCode eachCode = each.sent ? code : ErrorCode::storeUnavailable;
    if (each.posted) {
      each.posted->code = eachCode;
      copyWords(text, each.posted->why);
      finish(lock, std::move(each.posted));
    }
    if (each.request == nullptr) continue;
    Answer& answer = each.request->answers_[connection->node];
    answer.code = eachCode;
    copyWords(text, answer.why);
    finish(lock, *each.request, answer, Answer::State::failed);
  }
  node.lost(std::move(text), clock_.now());
}

void Multiplexer::finish(Lock& lock, Request& request, Answer& answer, Answer::State state) {
  answer.state = state;
  --request.waiting_;
  if (request.waker_ == nullptr) return;
  try {
    if (!request.over()) return;
  } catch (const std::bad_alloc&) {
    // Its caller wakes up and asks again.
  }
  lock.wake(*request.waker_);
  // It has all that it waits for: it is not to be chosen to lead the others.
  std::erase(sleeping_, &request);
}

void Multiplexer::finish(Lock& lock, std::unique_ptr<Posted> posted) {
  ++postedEnded_;
  lock.tell(std::move(posted));
  if (awaitingPosted_ == 0) return;
  for (const Request* const each : sleeping_) {
    if (each->waiting_ == 0) lock.wake(*each->waker_);
  }
}

// The leader writes whenever it has read. Where a reply is due, it does so soon, and the server would not
// come to more commands before that reply: they go together with others.
void Multiplexer::flushUnlessLeaderWill(Lock& lock) {
  const auto mustGo = [&](const Node& node) {
    return node.ready() && node.connection->hasOutput() && !node.connection->replyIsDue();
  };
  if (!leading_ || std::any_of(nodes_.begin(), nodes_.end(), mustGo)) flush(lock);
}

// Hands to the sockets what they take. Who has its own answer already leaves the rest to the leader.
void Multiplexer::flush(Lock& lock, const Request* own) {
  if (flushing_) return;
  const Flag flushing(flushing_);
  while (takeOutput()) {
    lock.unlock();
    for (Watched& each : flushed_) {
      try {
        each.sentBytes = each.connection->sendSome();
      } catch (const std::exception& fault) {
        each.failed = true;
        copyWords(fault.what(), each.fault);
      }
    }
    lock.lock();
    for (const Watched& each : flushed_) {
      Connection& connection = *each.connection;
      if (connection.ended) continue;
      if (each.failed) {
        end(lock, nodes_[each.node], ErrorCode::outcomeUnknown, each.fault);
        continue;
      }
      connection.sent(each.sentBytes);
      if (connection.blocked) interruptLeader();
    }
    if (own != nullptr && leading_ && own->over()) {
      interruptLeader();
      break;
    }
  }
  flushed_.clear();
}

bool Multiplexer::takeOutput() {
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

void Multiplexer::interruptLeader() const {
  const std::uint64_t one = 1;
  if (leading_) (void)!::write(wake_, &one, sizeof one);
}

}  // namespace lockkeeper::redis
