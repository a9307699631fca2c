#include "wire/mux/multiplexer.h"

#include <algorithm>
#include <utility>

#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

const AskRules& oneNode = *new AskRules();

bool asks(const AskRules& rules, std::size_t node) { return rules.nodes.empty() || rules.nodes[node]; }

}  // namespace

Multiplexer::Multiplexer(const std::vector<RedisOptions>& nodes, const Environment& environment, Admit admit,
                         const DialRules& rules)
    : nodes_(nodes, environment, std::move(admit), rules) {}

void Multiplexer::execute(Request& request, Instant deadline) {
  ask(request, oneNode, deadline);
  throwUnlessComplete(request.answers_.front());
}

void Multiplexer::start(Request& request, Instant deadline) {
  run(request, [&](Lock& lock) { (void)begin(lock, request, oneNode, deadline); });
}

void Multiplexer::finish(Request& request, Instant deadline) {
  run(request, [&](Lock& lock) { complete(lock, request, oneNode, deadline); });
  throwUnlessComplete(request.answers_.front());
}

void Multiplexer::throwUnlessComplete(const Answer& answer) {
  if (!answer.complete()) throwError(answer.code, answer.why);
}

void Multiplexer::ask(Request& request, const AskRules& rules, Instant deadline) {
  run(request, [&](Lock& lock) { complete(lock, request, rules, begin(lock, request, rules, deadline)); });
}

// When an exception ends the call, nothing may refer to the request any more.
template <class Call>
void Multiplexer::run(Request& request, Call call) {
  Lock lock(nodes_);
  try {
    call(lock);
  } catch (...) {
    for (const Node& node : nodes_) {
      if (node.ready()) node.connection->abandon(request, false);
    }
    request.waiting_ = 0;
    request.enough_ = nullptr;
    throw;
  }
}

// Returns until when to wait for answers.
Instant Multiplexer::begin(Lock& lock, Request& request, const AskRules& rules, Instant deadline) {
  Instant now = nodes_.now();
  request.startedAt_ = now;
  request.waiting_ = 0;
  request.enough_ = &rules.enough;
  now = nodes_.catchUp(lock, now);
  if (rules.needed > 0) now = reach(lock, request, rules, deadline, now);
  const Instant until = std::min(saturatingAdd(now, rules.patience), deadline);
  add(request, rules, until, now);
  nodes_.flush(lock, &request);
  return until;
}

void Multiplexer::complete(Lock& lock, Request& request, const AskRules& rules, Instant until) {
  nodes_.wait(lock, request.waiter_, until, [&] { return request.over(); });
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    if (asks(rules, index)) abandon(nodes_[index], request, rules, request.answers_[index]);
  }
  request.waiting_ = 0;
  request.enough_ = nullptr;
  nodes_.flush(lock, &request);
}

void Multiplexer::tell(std::size_t node, const Request& request) {
  Lock lock(nodes_);
  if (!nodes_[node].ready()) return;
  const Instant now = nodes_.now();
  nodes_[node].connection->add(
      {.request = nullptr, .replies = request.size(), .dueAt = saturatingAdd(now, nodes_.ioTimeout())},
      request.commands(), now);
  nodes_.flush(lock);
}

bool Multiplexer::post(const Request& request, std::unique_ptr<Posted> posted, std::uint64_t connection) {
  Lock lock(nodes_);
  const Instant now = nodes_.catchUp(lock, nodes_.now());
  const Node& node = nodes_[0];
  const bool possible =
      node.ready() && (connection == 0 || connection == node.connection->number) && !nodes_.silent(node, now);
  if (!possible || !nodes_.post(request, std::move(posted), now)) return false;
  nodes_.flushUnlessPollerWill(lock);
  return true;
}

void Multiplexer::awaitPosted(Instant deadline) {
  Lock lock(nodes_);
  nodes_.awaitPosted(lock, deadline);
  // What was left to this thread to write.
  nodes_.flush(lock);
}

bool Multiplexer::hasPosted() {
  const Lock lock(nodes_);
  return nodes_.hasPosted();
}

void Multiplexer::disconnect(std::size_t node, std::uint64_t connection, const std::string& why) {
  const Lock lock(nodes_);
  Node& named = nodes_[node];
  if (named.ready() && named.connection->number == connection) {
    nodes_.disconnect(named, ErrorCode::outcomeUnknown, why);
  }
}

bool Multiplexer::disconnectUnless(const std::string& server, const std::string& why, std::size_t node) {
  const Lock lock(nodes_);
  Node& named = nodes_[node];
  if (!named.ready() || named.server() == server) return false;
  nodes_.disconnect(named, ErrorCode::outcomeUnknown, why);
  return true;
}

bool Multiplexer::isConnected(std::size_t node, std::uint64_t connection) {
  const Lock lock(nodes_);
  const Node& named = nodes_[node];
  return named.ready() && named.connection->number == connection;
}

std::string Multiplexer::serverRun(std::uint64_t connection, std::size_t node) {
  const Lock lock(nodes_);
  const Node& named = nodes_[node];
  return named.ready() && named.connection->number == connection ? named.serverRun() : std::string();
}

// Waits for connections, as far as that is worth while. Returns the time, which has gone on.
Instant Multiplexer::reach(Lock& lock, Request& request, const AskRules& rules, Instant deadline,
                           Instant now) {
  if (worthWaiting(rules, now)) {
    // Half of the time at most, lest nothing be left for the question itself.
    const bool limited = rules.patience != AskRules::untilDeadline;
    const auto length = std::min<std::chrono::nanoseconds>(rules.patience, (deadline - now) / 2);
    nodes_.wait(lock, request.waiter_, limited ? saturatingAdd(now, length) : deadline,
                [&] { return !worthWaiting(rules, nodes_.now()); });
    now = nodes_.now();
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

// To the connections of the nodes that can be asked; the other answers say why they cannot.
void Multiplexer::add(Request& request, const AskRules& rules, Instant dueAt, Instant now) {
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
    answering += !nodes_.silent(node, now);
  }
  const bool enough = !rules.allOrNone || able >= rules.needed;
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    const Node& node = nodes_[index];
    Answer& answer = request.answers_[index];
    if (!asks(rules, index) || !node.ready() || !answer.why.empty()) continue;
    if (now >= dueAt) {
      answer.why = node.store() + ": no time was left to send";
    } else if (nodes_.silent(node, now) && answering >= std::max<std::size_t>(rules.needed, 1)) {
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

// Unless its answer is finished. What must arrive, and has not, is left to the node.
void Multiplexer::abandon(Node& node, Request& request, const AskRules& rules, Answer& answer) {
  if (answer.state == Answer::State::waiting) {
    const bool unsent = node.connection->abandon(request, rules.mustArrive);
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
    node.deliverLater(std::move(commands), nodes_.now());
  } else {
    node.deliver(std::move(commands), nodes_.now());
  }
}

}  // namespace lockkeeper::redis
