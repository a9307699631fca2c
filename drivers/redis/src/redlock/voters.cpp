#include "redlock/voters.h"

#include <algorithm>
#include <chrono>

namespace lockkeeper::redis {

namespace {

// Nodes are told times in whole milliseconds: a little later, they agree that the time is over.
constexpr std::chrono::milliseconds rounding{10};

}  // namespace

Voters::Voters(const RedlockOptions& options) : known_(options.nodes.size()) {
  for (const RedisOptions& node : options.nodes) {
    stores_.push_back(node.display());
    guards_.emplace_back(options.restartGuard, options.appendFsyncAlways);
  }
}

std::string Voters::admit(std::size_t node, const ServerFacts& facts, Instant now) {
  const std::lock_guard guard(mutex_);
  for (std::size_t other = 0; other < guards_.size(); ++other) {
    if (other == node || facts.runId.empty() || guards_[other].runId() != facts.runId) continue;
    return stores_[node] + " is the same server as " + stores_[other] +
           ": every vote needs a server of its own";
  }
  guards_[node].met(facts, now);
  return {};
}

std::string Voters::unfit(std::size_t node, Instant now) const {
  const std::lock_guard guard(mutex_);
  const Instant from = guards_[node].votesFrom();
  if (from <= now) return {};
  const auto wait = std::chrono::ceil<std::chrono::seconds>(from - now);
  return stores_[node] + " may have restarted and votes in " + std::to_string(wait.count()) + "s";
}

std::vector<Voters::Start> Voters::toObserve(Instant now) {
  const std::lock_guard guard(mutex_);
  std::vector<Start> starts;
  for (std::size_t node = 0; node < guards_.size(); ++node) {
    const RestartGuard& each = guards_[node];
    if (each.runId().empty() || each.votesFrom() == Instant::min() || known_[node] == each.runId()) continue;
    if (each.votesFrom() + rounding <= now) known_[node] = each.runId();
    starts.push_back({node, each.runId(), each.metAt()});
  }
  return starts;
}

bool Voters::knowNobody() const {
  const std::lock_guard guard(mutex_);
  return std::none_of(guards_.begin(), guards_.end(), [](const RestartGuard& each) { return each.isMet(); });
}

void Voters::observed(const Start& start, Instant asked, std::chrono::milliseconds left) {
  const std::lock_guard guard(mutex_);
  guards_[start.node].observed(start.runId, saturatingAdd(asked, left));
  if (left == left.zero()) known_[start.node] = start.runId;
}

}  // namespace lockkeeper::redis
