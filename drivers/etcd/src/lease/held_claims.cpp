#include "lease/held_claims.h"

#include <algorithm>
#include <span>

namespace lockkeeper::etcd {

namespace {

constexpr std::size_t fewHeld = 256;

// A new leader of the cluster lets a lease begin anew, perhaps just before its end.
Instant afterAll(Instant from, std::chrono::milliseconds length) {
  return saturatingAdd(saturatingAdd(from, length), length);
}

}  // namespace

void HeldClaims::add(const std::string& key, const Token& token, std::int64_t created, Instant now,
                     std::chrono::milliseconds length) {
  const std::lock_guard guard(mutex_);
  held_.insert_or_assign(key, Held{token, created, afterAll(now, length)});
  if (held_.size() <= mostHeld_) return;
  std::erase_if(held_, [&](const auto& each) { return each.second.forgetAt < now; });
  mostHeld_ = std::max(fewHeld, 2 * held_.size());
}

void HeldClaims::kept(const std::string& key, Instant from, std::chrono::milliseconds length) {
  const std::lock_guard guard(mutex_);
  const auto found = held_.find(key);
  if (found != held_.end()) found->second.forgetAt = afterAll(from, length);
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
  listeners_.claimsLost(std::span(&*token, 1));
}

}  // namespace lockkeeper::etcd
