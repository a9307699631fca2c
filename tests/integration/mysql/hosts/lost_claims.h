#pragma once

#include <mutex>
#include <set>
#include <span>
#include <string>

#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/driver/driver.h"

namespace lockkeeper::test {

/// Remembers which claims a driver has called lost.
struct Lost final : LossListener {
  void claimsLost(std::span<const Token> lost) noexcept override {
    const std::lock_guard held(mutex);
    for (const Token& each : lost) tokens.insert(each.hex());
  }
  bool heardOf(const Token& token) {
    const std::lock_guard held(mutex);
    return tokens.contains(token.hex());
  }
  std::mutex mutex;
  std::set<std::string> tokens;
};

}  // namespace lockkeeper::test
