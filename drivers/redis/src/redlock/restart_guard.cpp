#include "redlock/restart_guard.h"

#include <algorithm>
#include <charconv>

namespace lockkeeper::redis {

namespace {

// Uptime is a difference of whole seconds: the server may be younger than it says by almost one.
constexpr std::int64_t rounding = 1;

std::chrono::seconds leastUptime(const ServerFacts& facts) {
  std::int64_t uptime = 0;
  const std::string& text = facts.uptimeSeconds;
  std::from_chars(text.data(), text.data() + text.size(), uptime);
  constexpr std::int64_t longEnough = 10LL * 365 * 24 * 3600;
  return std::chrono::seconds(std::clamp<std::int64_t>(uptime - rounding, 0, longEnough));
}

}  // namespace

void RestartGuard::met(const ServerFacts& facts, Instant now, Instant lastHeard) {
  if (met_ && !facts.runId.empty() && facts.runId == runId_) return;
  const bool restarted = met_;
  met_ = true;
  runId_ = facts.runId;
  if (!length_ || (trustsSync_ && keepsEverything(facts))) {
    votesFrom_ = Instant::min();
    return;
  }
  Instant started = now - leastUptime(facts);
  if (restarted) started = std::max(started, lastHeard);
  votesFrom_ = started + *length_;
}

bool keepsEverything(const ServerFacts& facts) {
  return facts.aofEnabled == "1" && facts.appendFsync == "always";
}

}  // namespace lockkeeper::redis
