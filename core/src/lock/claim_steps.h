#pragma once

namespace lockkeeper::detail {

/// One caller's claim of a key: what to ask the store next, and with which token, given what the store has
/// answered. Nothing here blocks or knows the time; whoever drives it does what next() says and tells the
/// outcome. Not thread-safe.
class ClaimSteps {
 public:
  /// The claim's token.
  class Tokens {
   public:
    virtual ~Tokens() = default;
    /// Gives the claim a new one.
    virtual void replace() = 0;
    /// Releases in the background what the store may have granted to the present one.
    virtual void withdraw() noexcept = 0;
  };

  enum class Step {
    ask,      ///< Make an attempt.
    wait,     ///< Wait in the store's queue.
    pause,    ///< Wait for a while, then call resume() or stop().
    granted,  ///< The end: the store has granted the claim.
    ended,    ///< The end: it has not, and nothing is left of the claim, or it is withdrawn.
  };

  /// Why an attempt has failed.
  enum class Failure {
    unavailable,  ///< Certainly not applied; worth another try.
    unknown,      ///< Perhaps applied; worth another try.
    withdrawn,    ///< The driver has withdrawn the claim, and this may come late: WithdrawalUnknown.
    refused,      ///< Certainly not applied, and no use to try again.
    broken,       ///< Perhaps applied, and no use to try again.
  };

  /// What there is time for: nothing once the caller was stopped.
  struct Time {
    bool forMore = false;   ///< Another attempt after a pause, or a wait.
    bool forDoubt = false;  ///< An attempt at once that ends a doubt.
  };

  /// Gives the claim its first token. `storeQueues`: the store has a queue to wait in; `waitFirst`: in which
  /// the claim begins. `tokens` must outlive this.
  ClaimSteps(Tokens& tokens, bool storeQueues, bool waitFirst);

  Step next() const { return step_; }
  /// Whether the store may know the present token already.
  bool isResend() const { return token_ == TokenState::doubtful || token_ == TokenState::queued; }

  // The outcome of `ask` or `wait`.
  void granted();
  void grantedTooLate(Time left);
  void busy(Time left);
  void failed(Failure failure, Time left);

  // The outcome of `pause`.
  void resume();
  void stop();

 private:
  /// What the store may know of the present token.
  enum class TokenState {
    unused,    // nothing
    replaced,  // nothing; the one before was withdrawn, and it is not known whether the store is back
    doubtful,  // an attempt with it may have been applied
    queued,    // it may be in the store's queue, or have got the key from there
  };

  void useNewToken(TokenState state);
  void pauseOrEnd(Time left);
  void end();

  Tokens& tokens_;
  const bool storeQueues_;
  Step step_;
  TokenState token_ = TokenState::unused;
};

}  // namespace lockkeeper::detail
