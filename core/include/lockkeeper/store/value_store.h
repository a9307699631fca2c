#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

/// The largest value: 1 MiB. A value may be empty and may contain any bytes.
inline constexpr std::size_t maxValueBytes = std::size_t{1} << 20;

/// Small values that expire: answers to be replayed, results to be shared. A key is as that of a lock (1 to
/// 512 bytes, see key.h); a lock with the same key is independent of the value. A store drops no value before
/// its time as long as it keeps its writes; a store that is full refuses new values.
///
/// Thread-safe. Each call is one bounded attempt: no retry, no sleep; it blocks until `deadline` plus one I/O
/// timeout at most. Throws std::invalid_argument (a key, value or ttl out of range: nothing was sent),
/// StoreUnavailable, OutcomeUnknown, ProtocolError or ConfigError, as a LockDriver does.
class LOCKKEEPER_CORE_EXPORT ValueStore {
 public:
  virtual ~ValueStore() = default;

  /// The value; empty when there is none, or it has expired.
  virtual std::optional<std::string> get(std::string_view key, Instant deadline) = 0;

  /// Keeps `value` for `ttl` (1 ms to 366 days), in place of the present value.
  virtual void put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                   Instant deadline) = 0;

  /// Like put(), but only if there is no value. Returns false when there is one, which stays: the first value
  /// wins.
  virtual bool add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                   Instant deadline) = 0;

  /// Like put(), and also wakes those who wait for the value in await().
  virtual void announce(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                        Instant deadline) {
    put(key, value, ttl, deadline);
  }

  /// Like get(), but if there is no value, waits until somebody announces one, until `until`, or until
  /// `stop`. It may return earlier without a value: a store that cannot notify waiters does not wait at all.
  /// `deadline` is for the first request; each later one is bounded by one I/O timeout.
  virtual std::optional<std::string> await(std::string_view key, Instant /*until*/,
                                           const std::stop_token& /*stop*/, Instant deadline) {
    return get(key, deadline);
  }

  /// Removes the value. False when there was none.
  virtual bool erase(std::string_view key, Instant deadline) = 0;

  /// The part of the store that has the key, below mostParts, for a store whose parts fail one by one, such
  /// as a cluster: while one part does not answer, keys of other parts are still asked for. No I/O.
  virtual std::size_t partOf(std::string_view /*key*/) const { return 0; }
  static constexpr std::size_t mostParts = 16;
};

/// For stores: throws std::invalid_argument that names the fault, unless every store accepts these arguments.
LOCKKEEPER_CORE_EXPORT void checkValue(std::string_view key, std::string_view value,
                                       std::chrono::milliseconds ttl);

/// Values of this process, in its memory, on the given clock. Throws StoreUnavailable for a value that does
/// not fit any more. After fork() the child's copy throws ForkedError.
class LOCKKEEPER_CORE_EXPORT MemoryValues final : public ValueStore {
 public:
  static constexpr std::size_t defaultMostBytes = std::size_t{64} << 20;

  /// Keeps at most `mostBytes` of keys and values together.
  explicit MemoryValues(std::shared_ptr<Clock> clock = systemClock(),
                        std::size_t mostBytes = defaultMostBytes);
  ~MemoryValues() override;

  std::optional<std::string> get(std::string_view key, Instant deadline) override;
  void put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override;
  bool add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override;
  bool erase(std::string_view key, Instant deadline) override;
  std::optional<std::string> await(std::string_view key, Instant until, const std::stop_token& stop,
                                   Instant deadline) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockkeeper
