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

/// Sends the releases that nobody waits for. The release of a lock that ends is posted: the driver sends it
/// and reads the reply together with the next one, and if none comes, this class has it read the reply. A
/// claim that nobody uses and that may have been granted is abandoned: it is released until the store has
/// answered or its lease has ended there. The owner's mutex guards this class: it must not be held for post()
/// and ended(), and must be held for all else.
class UnawaitedReleases {
 public:
  /// `wakeUpAt` is called, with `mutex` held, when something falls due sooner than due() has said before.
  UnawaitedReleases(std::shared_ptr<LockDriver> driver, Environment environment, std::string owner,
                    std::chrono::nanoseconds operationTimeout, std::chrono::nanoseconds retryPause,
                    std::mutex& mutex, std::function<void(Instant)> wakeUpAt);

  /// False if the release was not sent; `listener` then hears nothing. Otherwise it has to call ended() when
  /// it has heard the outcome.
  bool post(const Claim& claim, std::shared_ptr<PostListener> listener) noexcept;
  void ended() noexcept;

  /// Releases the claim in the background until `until`, when its lease has certainly ended. If 65,536 claims
  /// are waiting, further ones are left to end by themselves, and the listener is told (EventKind::noted).
  void abandon(const Claim& claim, Instant until) noexcept;

  /// When work() is due; Instant::max() if there is nothing to do, or another thread is doing it.
  Instant due() const;

  /// Reads the outcomes of posted releases, or releases abandoned claims, the newest first, until the store
  /// has not answered a few times in a row. A claim without an answer comes after all others, and is tried
  /// again after a pause. Unlocks the mutex `held` during I/O.
  void work(std::unique_lock<std::mutex>& held);

  /// Waits for the outcomes of posted releases, tries all abandoned claims a last time, and forgets them.
  /// Blocks for one operationTimeout at most.
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
  std::uint64_t readUpTo_ = 0;  // posted_ when readAt_ was set: by then, other calls may have read so many

  std::list<Abandoned> claims_;  // moving one needs no memory
  bool forgotten_ = false;       // claims were left to end by themselves, and the listener does not know yet
  bool releasing_ = false;
  Instant tryAt_{};
  Instant dropAt_{};
};

}  // namespace lockkeeper::detail
