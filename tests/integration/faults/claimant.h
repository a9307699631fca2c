#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lockkeeper/base/random.h"
#include "lockkeeper/driver/driver.h"

namespace lockkeeper::test {

constexpr std::chrono::milliseconds longTtl = std::chrono::minutes{10};

/// How much later than promised a call may return on a machine that is busy with other things. Far below what
/// a call without a bound would take.
constexpr std::chrono::seconds schedulingSlack{5};

inline Instant now() { return systemClock()->now(); }
inline Instant in(std::chrono::milliseconds length) { return now() + length; }
inline Instant soon() { return in(std::chrono::seconds{10}); }

/// A key that nobody else has, with a token.
struct Claimant {
  Token token = Token::generate(*systemRandom());
  std::string key = "key-" + Token::generate(*systemRandom()).hex();
  std::optional<Share> share{};

  Claim claim() const { return {key, token, "test:1", share}; }
  AcquireRequest request(Instant deadline = soon(), bool resend = false) const {
    return {.claim = claim(), .ttl = longTtl, .deadline = deadline, .resend = resend};
  }
};

inline bool granted(const AcquireResult& result) { return std::holds_alternative<Granted>(result); }

}  // namespace lockkeeper::test
