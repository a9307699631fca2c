#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <stop_token>

#include "lock/engine.h"

namespace lockkeeper::detail {

// What the sources of Engine share.

struct Engine::Call {
  const LockTerms& terms;
  const std::stop_token& stop;
  const Instant began;
  const Instant waitUntil;
  const std::chrono::nanoseconds longestOutage;  // of the store, that the call waits for
  const LocalQueue::Hash keyHash;
  int attempts = 0;
};

/// The token of a lease that is being claimed: the only place where it changes.
class Engine::ClaimedToken final : public ClaimSteps::Tokens {
 public:
  ClaimedToken(Engine& engine, Lease& lease) : engine_(engine), lease_(lease) {}
  ClaimedToken(const ClaimedToken&) = delete;
  ~ClaimedToken() override { engine_.keeper_->stopExpecting(lease_); }

  void replace() override {
    engine_.keeper_->expect(lease_, Token::generate(*engine_.options_.environment.random));
  }
  void withdraw() noexcept override { engine_.withdraw(lease_); }

 private:
  Engine& engine_;
  Lease& lease_;
};

/// What one attempt of a claim leaves for the next.
struct Engine::Attempt {
  Instant began;
  bool isFirstInLine;       // the call has just begun, and hardly anybody can have got in line behind it
  Instant unansweredSince;  // Instant::max() after an answer
  std::exception_ptr failure{};
  std::optional<std::chrono::milliseconds> retryAfter{};
};

}  // namespace lockkeeper::detail
