#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/internal/string_map.h"
#include "memory/key_shares.h"

namespace lockkeeper::detail {

/// A claim that waits for its key, until it is granted or its grant has failed.
struct KeyWaiter {
  const AcquireRequest& request;
  const Instant since;
  std::condition_variable wakeUp{};
  std::optional<Granted> granted{};
  std::exception_ptr failure{};

  bool isServed() const { return granted || failure; }
};

/// A key that one claim has, or several share.
struct KeyRecord {
  Token token;
  std::string owner;
  Fence fence = 0;
  Instant end = Instant::min();
  std::optional<KeyShares> shares{};
  std::list<KeyWaiter*> waiters;
  Instant latestLook = Instant::min();  ///< Not before any of them wakes up by itself.

  /// Nobody has it `now`, when shares that have ended are removed.
  bool isFree(Instant now) const { return !shares && end <= now; }
  /// All leases have ended, whether shares are removed or not.
  bool isOver(Instant now) const { return (shares ? shares->last().end : end) <= now; }
  /// When it may have more room.
  Instant nextEnd() const { return shares ? shares->firstEnd() : end; }

  /// Whether a claim of this share can have it `now`, as far as those who hold it go.
  bool fits(const std::optional<Share>& share, Instant now) const {
    return isFree(now) || (shares && share && shares->fits(*share));
  }
  /// Whether those who share the key and this claim name different limits.
  bool isRefused(const Claim& claim) const {
    return shares && claim.share && claim.share->limit != shares->limit();
  }
  /// Throws when those who share the key and this claim name different limits.
  void checkLimit(const Claim& claim) const;

  /// Wakes those up who would look too late, since a lease now ends before, and, when it `isNewlyShared`,
  /// those who are refused for that.
  void wakeWaiters(bool isNewlyShared = false);

  /// One of those who have it.
  Holder holder(Instant now) const;
};

/// The keys of a memory driver, whose mutex guards it. Its calls are made `now`.
class LockTable {
 public:
  /// What one attempt comes to.
  AcquireResult acquire(const AcquireRequest& request, Instant now);
  RenewOutcome renew(Renewal& renewal, Instant now);
  /// Takes the key, or its share of it, from a claim: for the next waiters, or altogether. False when the
  /// claim does not have it.
  bool free(const Claim& claim, Instant now);

  /// A key that is held, after refresh(); null when it is free.
  KeyRecord* find(std::string_view key, Instant now);
  /// A key that an attempt has just found busy. It stays where it is while it has waiters.
  KeyRecord& busy(std::string_view key) { return records_.find(key)->second; }
  /// Ends leases that have expired, and serves those in front who fit. False when the key is free.
  bool refresh(KeyRecord& record, Instant now);
  /// A key goes to those who have waited longest, as far as it has room. False when it is free then.
  bool handOver(KeyRecord& record, Instant now);

  /// With keys that are free.
  const StringMap<KeyRecord>& records() const { return records_; }

 private:
  /// So many keep their place when they are free.
  static constexpr std::size_t fewRecords = 1024;

  Granted grant(KeyRecord& record, const AcquireRequest& request, Instant now);
  Granted grantShare(KeyRecord& record, const AcquireRequest& request, Instant now);
  void sweep(Instant now);

  StringMap<KeyRecord> records_;
  std::uint64_t grants_ = 0;  // of shares
  Fence lastFence_ = 0;       // one counter for all keys: it increases for each of them
  std::size_t sweepAt_ = fewRecords;
};

}  // namespace lockkeeper::detail
