#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/permit/share.h"

namespace lockkeeper {

/// All who hold `key`, one or those who share it; none when it is free. Throws as LockDriver::holder().
inline std::vector<Holder> holdersOf(LockDriver& driver, std::string_view key, Instant deadline) {
  auto holder = driver.holder(key, deadline);
  if (!holder) return {};
  auto* const permits = capability<Permits>(driver);
  if (!holder->share || permits == nullptr) return {*std::move(holder)};
  return permits->shareHolders(key, deadline);
}

/// Whether both are the same grant of one key. A store may show the owner of a grant cut for a while, and not
/// show its fence each time where its id tells it; and the limit of a share may change.
inline bool sameGrant(const Holder& one, const Holder& other) {
  if (one.grantId != other.grantId) return false;
  if (one.grantId.empty()) return one.fence == other.fence && (one.fence || one.owner == other.owner);
  return !one.fence || !other.fence || one.fence == other.fence;
}

/// Tells a share of a key from the others; empty for who has all of the key.
inline std::string shareName(const Holder& holder) {
  if (!holder.share) return {};
  return holder.grantId.empty() && holder.fence ? std::to_string(*holder.fence) : holder.grantId;
}

/// What it is of a key, for people: "reader", "upgradeable reader", "writer" or "3 of 5".
inline std::string shareText(const Share& share) {
  if (share == readerShare) return "reader";
  if (share == upgradeableShare) return "upgradeable reader";
  if (share == restOfUpgradeable) return "writer";
  return std::to_string(share.weight) + " of " + std::to_string(share.limit);
}

}  // namespace lockkeeper
