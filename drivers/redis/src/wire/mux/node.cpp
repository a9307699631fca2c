#include "wire/mux/node.h"

#include <algorithm>
#include <new>
#include <utility>

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;

// What is not delivered ends with its ttl anyway: forgetting it costs only time.
constexpr std::size_t mostUndelivered = 1024;
constexpr milliseconds pauseAfterRefusal{50};

}  // namespace

Node::Node(std::size_t index, const RedisOptions& options, const Environment& environment,
           const DialRules& rules)
    : index_(index), dialer_(options, environment, rules), backoff_(redialBackoff) {}

bool Node::silent(Instant now) const {
  return ready() && !connection->pending.empty() && connection->pending.front().dueAt <= now;
}

std::string Node::why() const {
  // What is wrong with the set-up is known while it is tried again.
  return dialing() && !misconfigured_ ? store() + " cannot be reached: still connecting" : why_;
}

bool Node::startDial(Instant now) {
  if (connection || dial || now < nextDial_) return false;
  dial = std::make_shared<Dial>(dialer_, now);
  dialStarted_ = now;
  return true;
}

void Node::dialGoesOn(Instant attendedUntil, Instant now) {
  const Instant since = std::max(attendedUntil, dialStarted_);
  if (now > since) dial->paused(now - since);
}

void Node::dialSucceeded(std::uint64_t connectionNumber, Instant now) {
  // All that may fail comes before the first change. A dial that is done serves nobody any more.
  const std::shared_ptr<Dial> done = std::move(dial);
  std::string serverRun = done->facts().runId;
  std::string server = done->server();
  connection = std::make_shared<Connection>(done->take(), index_, connectionNumber, now);
  serverRun_ = std::move(serverRun);
  server_ = std::move(server);
  tried_ = met_ = true;
  misconfigured_ = false;
  nextDial_ = nextDelivery_ = Instant::min();
  deliverAll(now);
}

void Node::dialFailed(ErrorCode code, std::string text, Instant now) noexcept {
  dial.reset();
  // Later, a node that was good must be able to go wrong without taking the others with it.
  misconfigured_ = code == ErrorCode::config && (misconfigured_ || !tried_);
  tried_ = true;
  why_ = std::move(text);
  code_ = code;
  nextDial_ = saturatingAdd(now, backoff_.next(*dialer_.environment().random));
}

void Node::stopWaitingForFirstDial() {
  if (dial) tried_ = true;
}

void Node::lost(std::string text, Instant now) noexcept {
  const auto& pending = connection->pending;
  const bool wasAsked =
      std::any_of(pending.begin(), pending.end(), [](const auto& each) { return each.sent; });
  if (wasAsked && !connection->answered)
    nextDial_ = saturatingAdd(now, backoff_.next(*dialer_.environment().random));
  try {
    for (Connection::Pending& each : connection->pending) {
      if (each.mustArrive) keep(std::move(each.mustArrive));
    }
  } catch (const std::bad_alloc&) {
    // Forgotten, as those beyond the last ones are.
  }
  connection.reset();
  why_ = std::move(text);
  code_ = ErrorCode::storeUnavailable;
}

void Node::deliver(std::shared_ptr<const std::string> commands, Instant now) {
  // Who never let us in has nothing to do.
  if (!met_) return;
  keep(std::move(commands));
  deliverAll(now);
}

void Node::deliverAll(Instant now) {
  if (!ready() || now < nextDelivery_) return;
  for (; !undelivered_.empty(); undelivered_.pop_front()) {
    const std::string_view bytes = *undelivered_.front();
    connection->add({.request = nullptr,
                     .mustArrive = undelivered_.front(),
                     .replies = 1,
                     .dueAt = saturatingAdd(now, dialer_.options().ioTimeout)},
                    bytes, now);
  }
}

void Node::deliverLater(std::shared_ptr<const std::string> commands, Instant now) {
  keep(std::move(commands));
  nextDelivery_ = now + pauseAfterRefusal;
}

void Node::keep(std::shared_ptr<const std::string> commands) {
  if (undelivered_.size() == mostUndelivered) undelivered_.pop_front();
  undelivered_.push_back(std::move(commands));
}

}  // namespace lockkeeper::redis
