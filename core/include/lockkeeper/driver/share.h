#pragma once

#include <cstdint>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// How much of a key a claim takes: `weight` of its `limit` permits. A semaphore's holder has w of n, a
/// reader 1 of many. All who share a key must name the same limit. A claim without a share, a mutex's, takes
/// all of the key, whatever the limit.
struct Share {
  /// The largest limit.
  static constexpr std::uint32_t most = 1'000'000;

  std::uint32_t weight = 1;    ///< 1 to `limit`.
  std::uint32_t limit = most;  ///< 1 to `most`.

  friend bool operator==(const Share&, const Share&) = default;
};

/// What those have of a key who read and write it: LockManager::lockShared(),
inline constexpr Share readerShare{};
/// UpgradeableLock: more than half, so that one holder at a time has it,
inline constexpr Share upgradeableShare{.weight = Share::most / 2 + 1};
/// and what it takes beside that to be alone.
inline constexpr Share restOfUpgradeable{.weight = Share::most - upgradeableShare.weight};

/// Throws std::invalid_argument that names the first value out of range.
LOCKKEEPER_CORE_EXPORT void checkShare(const Share& share);

}  // namespace lockkeeper
