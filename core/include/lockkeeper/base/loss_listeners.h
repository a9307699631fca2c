#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "lockkeeper/base/token.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

/// For drivers: the listeners that were added. Thread-safe.
class LOCKKEEPER_CORE_EXPORT LossListeners {
 public:
  /// As LossReporting::addLossListener() and DoubtReporting::addDoubtListener().
  void add(std::weak_ptr<LossListener> listener);
  /// Calls the function of this name of all listeners that still exist. Do not block.
  /// @{
  void claimsLost(std::span<const Token> tokens) const noexcept;
  void claimsInDoubt() const noexcept;
  /// @}

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<LossListener>> listeners_;
};

}  // namespace lockkeeper
