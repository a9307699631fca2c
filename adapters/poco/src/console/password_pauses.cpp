#include "console/password_pauses.h"

namespace lockkeeper::poco {

bool PasswordPauses::mayTry(const std::string& peer, Instant now) {
  const std::lock_guard guard(mutex_);
  std::erase_if(ends_, [now](const auto& each) { return each.second <= now; });
  const bool known = ends_.size() < mostPeers || ends_.contains(peer);
  return ends_.emplace(known ? peer : std::string(), now + afterWrong).second;
}

void PasswordPauses::wasRight(const std::string& peer) {
  const std::lock_guard guard(mutex_);
  if (ends_.erase(peer) == 0) ends_.erase("");
}

}  // namespace lockkeeper::poco
