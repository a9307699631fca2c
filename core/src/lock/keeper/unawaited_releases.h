#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/environment.h"

namespace lockkeeper::detail {

/// Releases that nobody waits for. Those of locks that end are posted: the driver sends them, and reads the
/// reply with whatever else it reads; if nothing else comes, this class asks it to. Claims that nobody uses
/// any more and whose fate at the store is not known are released, best effort, until the store has answered
/// or their lease has ended there. Its owner's mutex guards it; post() and ended() need it not held.
class UnawaitedReleases {
 public:
  /// `wakeUpAt` is called, with `mutex` held, when something falls due sooner than due() has said before.
  UnawaitedReleases(std::shared_ptr<LockDriver> driver, Environment environment, std::string owner,
                    std::chrono::nanoseconds operationTimeout, std::chrono::nanoseconds retryPause,
                    std::mutex& mutex, std::function<void(Instant)> wakeUpAt);

  /// False: not sent, `listener` will hear nothing. Otherwise it must call ended() when it has heard.
  bool post(const Claim& claim, std::shared_ptr<PostListener> listener) noexcept;
  void ended() noexcept;

  /// To be released until `until`, when its lease has ended at the latest. Of more than 65,536 claims that
  /// have not ended, the rest is left to end by itself, of which the listener hears (EventKind::noted).
  void abandon(const Claim& claim, Instant until) noexcept;

  /// When there is something to do; Instant::max() when there is not, or somebody is doing it.
  Instant due() const;

  /// Reads the outcomes of what was posted, or tries what is abandoned, one after the other and the newest
  /// first, until the store has not answered a few times in a row. What it has not answered comes after all
  /// others, and the next try after a pause. Lets go of the mutex `held` during I/O.
  void work(std::unique_lock<std::mutex>& held);

  /// Waits for the outcomes of what was posted, tries all that is abandoned a last time, and forgets it.
  /// Blocks for one operation at most.
  void finish(std::unique_lock<std::mutex>& held);

 private:
  struct Abandoned {
    std::string key;
    Token token;
    std::optional<Share> share;
    Instant until;
  };

  void readPosted(std::unique_lock<std::mutex>& held);
  void readLater();
  void dropEnded() noexcept;
  void releaseAbandoned(std::unique_lock<std::mutex>& held);
  void tellForgotten(std::unique_lock<std::mutex>& held);
  Claim claimOf(const Abandoned& claim) const { return {claim.key, claim.token, owner_, claim.share}; }
  bool postLast(const Abandoned& claim) noexcept;
  bool answered(const Abandoned& claim, Instant deadline) noexcept;

  const std::shared_ptr<LockDriver> driver_;
  const std::string store_;   // its name in events
  Postable* const postable_;  // null when the driver cannot
  const Environment environment_;
  const std::string owner_;
  const std::chrono::nanoseconds operationTimeout_;
  const std::chrono::nanoseconds retryPause_;
  std::mutex& mutex_;
  const std::function<void(Instant)> wakeUpAt_;

  std::atomic<std::uint64_t> posted_ = 0;
  std::atomic<std::uint64_t> ended_ = 0;  // of them
  std::atomic<bool> readIsPlanned_ = false;
  std::atomic<bool> finishing_ = false;
  std::condition_variable allEnded_;
  Instant readAt_ = Instant::max();
  std::uint64_t readUpTo_ = 0;  // what others have not read by then, of posted_

  std::list<Abandoned> claims_;  // moving one needs no memory
  bool forgotten_ = false;       // claims, of which the listener has not heard
  bool releasing_ = false;
  Instant tryAt_{};
  Instant dropAt_{};
};

}  // namespace lockkeeper::detail
