#include "lease/held_claims.h"

#include <algorithm>
#include <span>

namespace lockkeeper::etcd {

namespace {

constexpr std::size_t fewHeld = 256;

// A new leader lets a lease begin anew.
constexpr std::chrono::hours longest{24};

}  // namespace

void HeldClaims::add(const std::string& key, const Token& token, std::int64_t created, Instant now,
                     Instant until) {
  const std::lock_guard guard(mutex_);
  held_.insert_or_assign(key, Held{token, created, until});
  if (held_.size() <= mostHeld_) return;
  std::erase_if(held_, [&](const auto& each) { return saturatingAdd(each.second.until, longest) < now; });
  mostHeld_ = std::max(fewHeld, 2 * held_.size());
}

void HeldClaims::keptUntil(const std::string& key, Instant until) {
  const std::lock_guard guard(mutex_);
  const auto found = held_.find(key);
  if (found != held_.end()) found->second.until = until;
}

std::optional<std::int64_t> HeldClaims::createdAt(const std::string& key) const {
  const std::lock_guard guard(mutex_);
  const auto found = held_.find(key);
  return found == held_.end() ? std::nullopt : std::optional(found->second.created);
}

void HeldClaims::remove(const std::string& key) {
  const std::lock_guard guard(mutex_);
  held_.erase(key);
}

void HeldClaims::lost(const std::string& key, std::int64_t revision) {
  std::optional<Token> token;
  {
    const std::lock_guard guard(mutex_);
    const auto found = held_.find(key);
    if (found == held_.end() || found->second.created >= revision) return;
    token = found->second.token;
    held_.erase(found);
  }
  listeners_.tell(std::span(&*token, 1));
}

}  // namespace lockkeeper::etcd
