#include "lock/claim_steps.h"

namespace lockkeeper::detail {

ClaimSteps::ClaimSteps(Tokens& tokens, bool storeQueues, bool waitFirst)
    : tokens_(tokens), storeQueues_(storeQueues), step_(waitFirst ? Step::wait : Step::ask) {
  useNewToken(TokenState::unused);
}

void ClaimSteps::granted() { step_ = Step::granted; }

void ClaimSteps::grantedTooLate(Time left) {
  tokens_.withdraw();
  useNewToken(TokenState::unused);
  pauseOrEnd(left);
}

void ClaimSteps::busy(Time left) {
  // A wait that ends has left the queue. An attempt says nothing about the place in it.
  const bool hasWaited = step_ == Step::wait;
  if (hasWaited || token_ != TokenState::queued) token_ = TokenState::unused;
  // A wait that ends too soon has found no place in the queue: then the claim polls.
  if (!storeQueues_ || hasWaited || !left.forMore) return pauseOrEnd(left);
  if (token_ != TokenState::queued) useNewToken(TokenState::unused);
  step_ = Step::wait;
}

void ClaimSteps::failed(Failure failure, Time left) {
  const bool isFirst = token_ == TokenState::unused;
  const bool mayBeQueued = token_ == TokenState::queued || step_ == Step::wait;
  switch (failure) {
    case Failure::unavailable:
      if (!isResend()) token_ = TokenState::unused;
      return pauseOrEnd(left);
    case Failure::unknown:
      token_ = mayBeQueued ? TokenState::queued : TokenState::doubtful;
      break;
    case Failure::withdrawn:
      tokens_.withdraw();
      useNewToken(TokenState::replaced);
      break;
    case Failure::broken:
      token_ = TokenState::doubtful;
      return end();
    case Failure::refused:
      return end();
  }
  // Most doubts come from a connection that has died: the same token, sent again, tells at once.
  if (!isFirst || !left.forDoubt) return pauseOrEnd(left);
  step_ = Step::ask;
}

void ClaimSteps::resume() {
  // What is left of the last attempt must not be taken for the next one's.
  if (!isResend()) useNewToken(token_);
  step_ = Step::ask;
}

void ClaimSteps::stop() { end(); }

void ClaimSteps::useNewToken(TokenState state) {
  tokens_.replace();
  token_ = state;
}

void ClaimSteps::pauseOrEnd(Time left) {
  if (!left.forMore) return end();
  step_ = Step::pause;
}

void ClaimSteps::end() {
  if (isResend()) tokens_.withdraw();
  step_ = Step::ended;
}

}  // namespace lockkeeper::detail
