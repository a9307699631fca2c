#include <algorithm>

#include "lockkeeper/base/loss_listeners.h"
#include "lockkeeper/driver/losses.h"

namespace lockkeeper {

void LossListeners::add(std::weak_ptr<LossListener> listener) {
  const std::lock_guard guard(mutex_);
  std::erase_if(listeners_, [](const auto& each) { return each.expired(); });
  listeners_.push_back(std::move(listener));
}

void LossListeners::claimsLost(std::span<const Token> tokens) const noexcept {
  if (tokens.empty()) return;
  const std::lock_guard guard(mutex_);
  for (const auto& each : listeners_) {
    if (const auto listener = each.lock()) listener->claimsLost(tokens);
  }
}

void LossListeners::claimsInDoubt() const noexcept {
  const std::lock_guard guard(mutex_);
  for (const auto& each : listeners_) {
    if (const auto listener = each.lock()) listener->claimsInDoubt();
  }
}

}  // namespace lockkeeper
