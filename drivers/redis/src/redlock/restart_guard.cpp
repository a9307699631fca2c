#include "redlock/restart_guard.h"

#include <algorithm>

namespace lockkeeper::redis {

void RestartGuard::met(const ServerFacts& facts, Instant now) {
  if (met_ && !facts.runId.empty() && facts.runId == runId_) return;
  met_ = true;
  runId_ = facts.runId;
  metAt_ = now;
  const bool forgetsNothing = !length_ || (trustsSync_ && keepsEverything(facts));
  votesFrom_ = forgetsNothing ? Instant::min() : saturatingAdd(now, *length_);
}

void RestartGuard::observed(const std::string& runId, Instant votesFrom) {
  if (runId == runId_) votesFrom_ = std::min(votesFrom_, votesFrom);
}

bool keepsEverything(const ServerFacts& facts) {
  return facts.aofEnabled == "1" && facts.appendFsync == "always";
}

}  // namespace lockkeeper::redis
