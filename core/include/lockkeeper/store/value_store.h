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

/// Values have up to 1 MiB, of any bytes; they may be empty.
inline constexpr std::size_t maxValueBytes = std::size_t{1} << 20;

/// Small values that expire: answers to be replayed, results to be shared. Keys are those of locks
/// (1 to 512 bytes, see key.h) and name values only: a lock of the same key is something else. A store drops
/// no value before its time as long as it keeps its writes; one that is full refuses new values.
///
/// Thread-safe. Each call is one bounded attempt: no retry, no sleep; it blocks until `deadline` plus one I/O
/// timeout at most. Throws std::invalid_argument (a key, value or ttl out of range: nothing was sent),
/// StoreUnavailable, OutcomeUnknown, ProtocolError or ConfigError, as a LockDriver does.
class LOCKKEEPER_CORE_EXPORT ValueStore {
 public:
  virtual ~ValueStore() = default;

  /// The value; empty when there is none, or it has expired.
  virtual std::optional<std::string> get(std::string_view key, Instant deadline) = 0;

  /// Keeps `value` for `ttl` (1 ms to 366 days), in place of what is there.
  virtual void put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                   Instant deadline) = 0;

  /// Like put(), but only where there is no value. False when there is one, which stays: the first value
  /// wins.
  virtual bool add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                   Instant deadline) = 0;

  /// Like put(), and tells those who wait for the value in await().
  virtual void announce(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                        Instant deadline) {
    put(key, value, ttl, deadline);
  }

  /// Like get(), but while there is no value it waits for one that somebody announces: until `until`, or
  /// `stop`. It may give up at any time before: a store that cannot tell does not wait at all. `deadline` is
  /// for the first look; each later one is bounded by one I/O timeout.
  virtual std::optional<std::string> await(std::string_view key, Instant /*until*/,
                                           const std::stop_token& /*stop*/, Instant deadline) {
    return get(key, deadline);
  }

  /// Removes the value. False when there was none.
  virtual bool erase(std::string_view key, Instant deadline) = 0;

  /// A store whose parts fail one by one, such as a cluster, says in which part a key is, below mostParts:
  /// while one does not answer, the keys of the others are asked for all the same. Asks nobody, and does not
  /// block.
  virtual std::size_t partOf(std::string_view /*key*/) const { return 0; }
  static constexpr std::size_t mostParts = 16;
};

/// Throws std::invalid_argument, naming the fault, unless every store takes them. For stores.
LOCKKEEPER_CORE_EXPORT void checkValue(std::string_view key, std::string_view value,
                                       std::chrono::milliseconds ttl);

/// Values of this process, in its memory, on the given clock. A value that does not fit any more, with its
/// key, throws StoreUnavailable. After fork() the child's copy throws ForkedError.
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
