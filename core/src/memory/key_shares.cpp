#include "memory/key_shares.h"

#include <utility>

namespace lockkeeper::detail {

Holder KeyShares::Grant::holder(Instant now) const {
  return {.owner = owner,
          .remaining = std::chrono::ceil<std::chrono::milliseconds>(end - now),
          .fence = fence,
          .grantId = std::to_string(number),
          .share = share};
}

const KeyShares::Grant* KeyShares::find(const Token& token) const {
  const auto found = grants_.find(token);
  return found == grants_.end() ? nullptr : &found->second;
}

void KeyShares::add(const Token& token, Grant grant) {
  const auto end = ends_.emplace(grant.end, token).first;
  const std::uint32_t weight = grant.share.weight;
  try {
    grants_.emplace(token, std::move(grant));
  } catch (...) {
    ends_.erase(end);  // no memory: it has no share
    throw;
  }
  used_ += weight;
}

bool KeyShares::extend(const Token& token, Instant end) {
  const auto found = grants_.find(token);
  if (found == grants_.end()) return false;
  auto place = ends_.extract({found->second.end, token});  // needs no memory
  place.value().first = end;
  ends_.insert(std::move(place));
  found->second.end = end;
  return true;
}

bool KeyShares::remove(const Token& token) {
  const auto found = grants_.find(token);
  if (found == grants_.end()) return false;
  used_ -= found->second.share.weight;
  ends_.erase({found->second.end, token});
  grants_.erase(found);
  return true;
}

void KeyShares::removeEnded(Instant now) {
  while (!empty() && firstEnd() <= now) {
    const Token ended = ends_.begin()->second;
    remove(ended);
  }
}

}  // namespace lockkeeper::detail
