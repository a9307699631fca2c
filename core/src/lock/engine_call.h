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
  const std::chrono::nanoseconds longestOutage;  // how long the call waits for a store that does not answer
  const LocalQueue::Hash keyHash;
  int attempts = 0;
};

/// Changes and withdraws the token of a lease that is being claimed. Nothing else does.
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

/// The present attempt of a claim, and what the one before has left for it.
struct Engine::Attempt {
  Instant began;
  bool isFirstInLine;       // the call has just begun: hardly any other one can be in line behind it
  Instant unansweredSince;  // Instant::max() after an answer
  std::exception_ptr failure{};
  std::optional<std::chrono::milliseconds> retryAfter{};
};

}  // namespace lockkeeper::detail
