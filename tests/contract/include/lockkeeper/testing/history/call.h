#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "lockkeeper/rate_policy.h"
#include "lockkeeper/testing/history/record.h"

namespace lockkeeper::testing::history {

/// A time that does not come.
inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// All that a history says of one call.
struct Call {
  Operation operation = Operation::lock;
  Kind kind = Kind::exclusive;
  std::uint32_t process = 0;   ///< For History::process().
  std::uint32_t key = 0;       ///< For History::key(); of a limit, "policy:key".
  std::size_t line = 0;        ///< Of its invoke.
  std::size_t answerLine = 0;  ///< 0 as long as there is no answer.
  std::int64_t invoked = 0;
  std::int64_t answered = never;
  std::int64_t within = never;
  std::optional<Phase> answer{};  ///< ok, fail or unknown.

  // Of a lock call:
  std::int64_t weight = 0;  ///< How much of the key it asks for,
  std::int64_t limit = 0;   ///< and how much all may have together, when it gets that.
  std::optional<Fence> fence{};
  std::int64_t until = 0;      ///< When the process stops by itself to believe in the grant.
  std::int64_t ended = never;  ///< When it began to release it, was told that it is lost, or died.
  std::int64_t firstQueued = never;
  std::int64_t lastQueued = 0;
  std::int64_t waitedUntil = 0;  ///< The last `queued` but one: since then it may have left the queue.

  // Of the other calls:
  Call* grant = nullptr;                ///< That it reads or writes under, renews or releases.
  std::optional<std::int64_t> value{};  ///< That was read, or is written.
  const RatePolicy* policy = nullptr;
  std::int64_t units = 0;
  std::optional<std::int64_t> at{};

  /// Whether the process had the key, or its share of it, from `answered` until `believedUntil()`.
  bool isGrant() const noexcept { return operation == Operation::lock && answer == Phase::ok; }
  /// Whether nobody else may have the key meanwhile, or only shares that let it in.
  bool isWriter() const noexcept { return kind == Kind::exclusive || kind == Kind::upgrade; }
  /// When the process stops to believe in its grant: at its deadline, its release or its loss.
  std::int64_t believedUntil() const noexcept { return std::min(until, ended); }
};

}  // namespace lockkeeper::testing::history
