#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/environment.h"
#include "lockkeeper/export.h"
#include "lockkeeper/lock_options.h"
#include "lockkeeper/store/value_store.h"

namespace lockkeeper {

/// How latches and barriers are kept. Values outside their range are refused with std::invalid_argument.
struct LatchOptions {
  /// Put before each name with a ':', as that of a manager. [A-Za-z0-9_.-]{0,64}.
  std::string keyNamespace{};

  /// How long the store remembers that a participant has counted down: 1 s to 366 days. Longer than the job,
  /// and than anybody may come late to wait(). Then the latch is as new.
  std::chrono::milliseconds keep{std::chrono::hours{24}};

  /// How long one request may take: 1 ms to 1 h.
  std::chrono::milliseconds operationTimeout{std::chrono::seconds{2}};

  /// How long a wait `forever` goes on while the store cannot be reached: 1 ms to 24 h, or `forever`. Then it
  /// throws the store's error. Counted anew when the store has answered.
  std::chrono::milliseconds longestOutage{std::chrono::minutes{1}};

  /// The longest pause between two looks at a store that cannot tell of new values: 1 ms to 1 h.
  std::chrono::milliseconds longestPause{250};

  Environment environment{};
};

/// Opens when each of its participants has counted down, in whatever processes they are. All have to name the
/// same participants. What is in the store is one small value for each that has counted down, which expires.
/// It cannot be closed again: take another name, or a Barrier. Thread-safe. After fork() it is as its store.
class LOCKKEEPER_CORE_EXPORT CountDownLatch {
 public:
  /// Name and participants have 1 to 64 characters of [A-Za-z0-9_.-]; 1 to 1,000 participants, one named
  /// twice is one. Throws std::invalid_argument. Sends nothing.
  CountDownLatch(std::shared_ptr<ValueStore> store, std::string name, std::vector<std::string> participants,
                 LatchOptions options = {});

  /// Counts this participant. Twice is once: repeat it after StoreUnavailable or OutcomeUnknown, and after a
  /// restart. One attempt. Throws std::invalid_argument for one that is not a participant, and what
  /// ValueStore throws.
  void countDown(std::string_view participant);

  /// Blocks until all have counted down, for `waitFor` (0 ms to 24 h, or `forever`) plus operationTimeout
  /// plus one I/O timeout at most. False when some have not, when the store took too long to tell it of all
  /// of them, or when `stop` was triggered. A store that is down is waited for, with `forever` for
  /// LatchOptions::longestOutage; throws its error when it still fails at the end. The store tells when one
  /// counts down (ValueStore::await); a look every five seconds finds what it has not told.
  [[nodiscard]] bool wait(std::chrono::milliseconds waitFor = forever, const std::stop_token& stop = {});

  /// Who has not counted down yet: one request for each participant, one after the other, and
  /// operationTimeout for each. Throws as countDown().
  [[nodiscard]] std::vector<std::string> missing();

 private:
  friend class Barrier;
  std::string keyOf(std::string_view participant) const;

  std::shared_ptr<ValueStore> store_;
  std::string name_;
  std::vector<std::string> participants_;  // sorted
  LatchOptions options_;
  std::string_view kind_ = "latch";
};

/// Lets its participants go on together, round after round. All have to name the same participants and count
/// the rounds alike, so that one that was restarted comes back to its round. Thread-safe.
class LOCKKEEPER_CORE_EXPORT Barrier {
 public:
  /// As CountDownLatch(). LatchOptions::keep is for each round.
  Barrier(std::shared_ptr<ValueStore> store, std::string name, std::vector<std::string> participants,
          LatchOptions options = {});

  /// Counts this participant for `round`, and blocks until all have come to it, as CountDownLatch::wait()
  /// does. When that is false, the participant still counts; call again to go on waiting. An attempt to count
  /// that fails is repeated while it waits.
  [[nodiscard]] bool arriveAndWait(std::string_view participant, std::uint64_t round,
                                   std::chrono::milliseconds waitFor = forever,
                                   const std::stop_token& stop = {});

 private:
  std::shared_ptr<ValueStore> store_;
  std::string name_;
  std::vector<std::string> participants_;
  LatchOptions options_;
};

}  // namespace lockkeeper
