#include "redlock/voters.h"

#include <chrono>

namespace lockkeeper::redis {

Voters::Voters(const RedlockOptions& options) {
  for (const RedisOptions& node : options.nodes) {
    stores_.push_back(node.display());
    guards_.emplace_back(options.restartGuard, options.appendFsyncAlways);
  }
}

std::string Voters::admit(std::size_t node, const ServerFacts& facts, Instant now, Instant lastHeard) {
  const std::lock_guard guard(mutex_);
  for (std::size_t other = 0; other < guards_.size(); ++other) {
    if (other == node || facts.runId.empty() || guards_[other].runId() != facts.runId) continue;
    return stores_[node] + " is the same server as " + stores_[other] +
           ": every vote needs a server of its own";
  }
  guards_[node].met(facts, now, lastHeard);
  return {};
}

std::string Voters::unfit(std::size_t node, Instant now) const {
  const std::lock_guard guard(mutex_);
  const Instant from = guards_[node].votesFrom();
  if (from <= now) return {};
  const auto wait = std::chrono::ceil<std::chrono::seconds>(from - now);
  return stores_[node] + " has restarted and votes in " + std::to_string(wait.count()) + "s";
}

}  // namespace lockkeeper::redis
