#include "wire/mux/node.h"

#include <algorithm>
#include <utility>

namespace lockkeeper::redis {

namespace {

// What is owed ends with its ttl anyway: in a long outage, forgetting the oldest costs only time.
constexpr std::size_t mostDebts = 1024;

}  // namespace

Node::Node(const RedisOptions& options, const Environment& environment, RestartGuard restartGuard)
    : guard(std::move(restartGuard)), connector_(options, environment) {}

bool Node::silent(Instant now) const {
  return connection != nullptr && !connection->pending.empty() && connection->pending.front().dueAt <= now;
}

bool Node::startDial(Instant now) {
  if (connection || dial || !backoff_.due(now)) return false;
  dial = std::make_shared<Dial>(connector_);
  dialGoesOn(now);
  return true;
}

void Node::dialGoesOn(Instant now) { dialUntil_ = saturatingAdd(now, connector_.options().connectTimeout); }

void Node::dialSucceeded(Instant now) {
  guard.met(dial->facts(), now, lastHeard);
  connection = std::make_shared<Connection>(dial->take());
  connection->lastUse = now;
  dial.reset();
  blocked = false;
  lastHeard = now;
  tried_ = met_ = true;
  mistaken_ = false;
  backoff_.succeeded();
  for (Debt& debt : debts_) send(debt, now);
}

void Node::dialFailed(ErrorCode code, const std::string& text, Instant now) {
  dial.reset();
  // Later, a node that was good must be able to go wrong without taking the others with it.
  mistaken_ = code == ErrorCode::config && (mistaken_ || !tried_);
  tried_ = true;
  why_ = text;
  code_ = code;
  backoff_.failed(code, text, now, *connector_.environment().random);
}

void Node::stopWaitingForFirstDial() {
  if (!dial || tried_) return;
  tried_ = true;
  why_ = store() + " cannot be reached: it has not answered yet";
}

void Node::lost(ErrorCode code, const std::string& text) {
  connection.reset();
  why_ = text;
  code_ = code;
}

void Node::owe(const std::string& commands, Instant now) {
  // Who never let us in has nothing to give back.
  if (!met_) return;
  makeRoom();
  debts_.push_back({commands, nullptr});
  if (connection) send(debts_.back(), now);
}

void Node::owe(const std::string& commands, std::unique_ptr<Ballot> ballot) {
  makeRoom();
  ballot->round = nullptr;
  debts_.push_back({commands, std::move(ballot)});
}

void Node::paid(const Ballot& ballot) {
  const auto own = find(ballot);
  if (own != debts_.end()) debts_.erase(own);
}

void Node::unpaid(const Ballot& ballot) {
  const auto own = find(ballot);
  if (own != debts_.end()) own->ballot.reset();
}

void Node::send(Debt& debt, Instant now) {
  debt.ballot = std::make_unique<Ballot>(nullptr, 1);
  connection->add(debt.ballot.get(), debt.commands, 1, now,
                  saturatingAdd(now, connector_.options().ioTimeout));
}

void Node::makeRoom() {
  if (debts_.size() < mostDebts) return;
  if (connection && debts_.front().ballot) connection->forget(*debts_.front().ballot);
  debts_.pop_front();
}

std::deque<Node::Debt>::iterator Node::find(const Ballot& ballot) {
  return std::find_if(debts_.begin(), debts_.end(),
                      [&](const Debt& each) { return each.ballot.get() == &ballot; });
}

}  // namespace lockkeeper::redis
