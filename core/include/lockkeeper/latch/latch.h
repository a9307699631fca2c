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

/// How latches and barriers work. Values out of range are refused with std::invalid_argument.
struct LatchOptions {
  /// A prefix of each name, separated by a ':', as that of a manager. [A-Za-z0-9_.-]{0,64}.
  std::string keyNamespace{};

  /// How long the store remembers that a participant has counted down: 1 s to 366 days. Choose it longer than
  /// the job and the latest call of wait(). After that, the latch is as new.
  std::chrono::milliseconds keep{std::chrono::hours{24}};

  /// How long one request may take: 1 ms to 1 h.
  std::chrono::milliseconds operationTimeout{std::chrono::seconds{2}};

  /// How long a wait `forever` goes on while the store cannot be reached: 1 ms to 24 h, or `forever`. After
  /// that it throws the store's error. The time starts again whenever the store answers.
  std::chrono::milliseconds longestOutage{std::chrono::minutes{1}};

  /// The longest pause between two requests to a store that cannot notify waiters of new values: 1 ms to 1 h.
  std::chrono::milliseconds longestPause{250};

  Environment environment{};
};

/// Opens when each of its participants, in any processes, has counted down. All must name the same
/// participants. The store keeps one small value, which expires, for each participant that has counted down.
/// A latch cannot be closed again: use another name, or a Barrier. Thread-safe. After fork() it behaves as
/// its store does.
class LOCKKEEPER_CORE_EXPORT CountDownLatch {
 public:
  /// Names have 1 to 64 characters of [A-Za-z0-9_.-]. There are 1 to 1,000 participants; one that is named
  /// twice counts once. Throws std::invalid_argument. Sends nothing.
  CountDownLatch(std::shared_ptr<ValueStore> store, std::string name, std::vector<std::string> participants,
                 LatchOptions options = {});

  /// Counts this participant, once however often it is called: repeat it after StoreUnavailable or
  /// OutcomeUnknown, and after a restart. One attempt. Throws std::invalid_argument for a name that is not a
  /// participant's, and what ValueStore throws.
  void countDown(std::string_view participant);

  /// Blocks until all have counted down, for `waitFor` (0 ms to 24 h, or `forever`) plus operationTimeout
  /// plus one I/O timeout at most. Returns false when some have not, when the store took too long to report
  /// all of them, or when `stop` was triggered. It also waits for a store that is down, with `forever` for
  /// LatchOptions::longestOutage, and throws the store's error if it still fails at the end. The store
  /// notifies waiters (ValueStore::await); in addition, they ask it every five seconds.
  [[nodiscard]] bool wait(std::chrono::milliseconds waitFor = forever, const std::stop_token& stop = {});

  /// The participants that have not counted down yet. One request for each participant, one after the other,
  /// each with operationTimeout. Throws as countDown().
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

/// Lets its participants continue together, round after round. All must name the same participants and number
/// the rounds in the same way, so that one that was restarted returns to its round. Thread-safe.
class LOCKKEEPER_CORE_EXPORT Barrier {
 public:
  /// As CountDownLatch(). LatchOptions::keep applies to each round.
  Barrier(std::shared_ptr<ValueStore> store, std::string name, std::vector<std::string> participants,
          LatchOptions options = {});

  /// Counts this participant for `round`, and blocks until all participants have arrived, as
  /// CountDownLatch::wait() does. If it returns false, the participant still counts; call it again to
  /// continue waiting. While it waits, it repeats an attempt to count that failed.
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
