#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/environment.h"

namespace lockkeeper::detail {

/// Claims that nobody uses any more and whose fate at the store is not known. They are released, best effort,
/// until the store has answered or their lease has ended there. Not thread-safe: its owner's mutex guards it.
class AbandonedClaims {
 public:
  AbandonedClaims(std::shared_ptr<LockDriver> driver, Environment environment, std::string owner,
                  std::chrono::nanoseconds operationTimeout, std::chrono::nanoseconds retryPause);

  /// To be released until `until`, when its lease has ended at the latest.
  void add(const Claim& claim, Instant until);

  /// When the next try is due; Instant::max() when there is nothing to do, or somebody is doing it.
  Instant due() const { return claims_.empty() || releasing_ ? Instant::max() : tryAt_; }

  /// Tries one after the other, until the store does not answer. That claim then comes after all others, and
  /// the next try after a pause. Lets go of the mutex `held` during I/O.
  void release(std::unique_lock<std::mutex>& held);

  /// Hands all of them over to the store, as a last try, and forgets them. Blocks for one operation at most.
  void handOver(std::unique_lock<std::mutex>& held);

 private:
  struct Abandoned {
    std::string key;
    Token token;
    Instant until;
  };

  template <class Send>
  bool answered(const Abandoned& claim, Send send) noexcept;

  const std::shared_ptr<LockDriver> driver_;
  const Environment environment_;
  const std::string owner_;
  const std::chrono::nanoseconds operationTimeout_;
  const std::chrono::nanoseconds retryPause_;
  std::deque<Abandoned> claims_;
  bool releasing_ = false;
  Instant tryAt_{};
};

}  // namespace lockkeeper::detail
