#pragma once

#include <cstdint>
#include <string_view>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// How much of a key a claim takes: `weight` of its `limit` permits. The holder of a semaphore has w of n
/// permits, a reader 1 of many. All who share a key must name the same limit. A claim without a share, such
/// as that of a mutex, takes the whole key, whatever the limit is.
struct Share {
  /// The largest limit.
  static constexpr std::uint32_t most = 1'000'000;

  std::uint32_t weight = 1;    ///< 1 to `limit`.
  std::uint32_t limit = most;  ///< 1 to `most`.

  friend bool operator==(const Share&, const Share&) = default;
};

/// The share of LockManager::lockShared().
inline constexpr Share readerShare{};
/// The share of an UpgradeableLock: more than half, so that a key has at most one such holder.
inline constexpr Share upgradeableShare{.weight = Share::most / 2 + 1};
/// What an UpgradeableLock takes in addition, to be alone.
inline constexpr Share restOfUpgradeable{.weight = Share::most - upgradeableShare.weight};

/// Throws std::invalid_argument that names the first value out of range.
LOCKKEEPER_CORE_EXPORT void checkShare(const Share& share);

/// For drivers with Permits: throws the ConfigError for a claim that `asked` for a share of another limit
/// than the `limit` of the holders of `key`.
[[noreturn]] LOCKKEEPER_CORE_EXPORT void throwLimitsDisagree(std::string_view key, const Share& asked,
                                                             std::uint32_t limit);

}  // namespace lockkeeper
