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
  Instant latestWakeUp = Instant::min();  ///< No waiter wakes up by itself later than that.

  /// Whether nobody has it `now`. Shares that have ended must have been removed.
  bool isFree(Instant now) const { return !shares && end <= now; }
  /// Whether all leases have ended `now`, also if shares that have ended were not removed.
  bool isOver(Instant now) const { return (shares ? shares->last().end : end) <= now; }
  /// When it may have more room.
  Instant nextEnd() const { return shares ? shares->firstEnd() : end; }

  /// Whether a claim of this share fits beside those who have the key `now`.
  bool fits(const std::optional<Share>& share, Instant now) const {
    return isFree(now) || (shares && share && shares->fits(*share));
  }
  /// Whether those who share the key and this claim name different limits.
  bool isRefused(const Claim& claim) const {
    return shares && claim.share && claim.share->limit != shares->limit();
  }
  /// Throws when those who share the key and this claim name different limits.
  void checkLimit(const Claim& claim) const;

  /// Wakes up the waiters that would wake up by themselves after a lease has ended, and, if the key
  /// `isNewlyShared`, those that name another limit.
  void wakeWaiters(bool isNewlyShared = false);

  /// One of its holders.
  Holder holder(Instant now) const;
};

/// The keys of a memory driver, whose mutex guards it. `now` is the time of a call.
class LockTable {
 public:
  /// Makes one attempt.
  AcquireResult acquire(const AcquireRequest& request, Instant now);
  RenewOutcome renew(Renewal& renewal, Instant now);
  /// Takes the key, or its share of it, from a claim: for the next waiters, or altogether. False when the
  /// claim does not have it.
  bool free(const Claim& claim, Instant now);

  /// A key that is held, after refresh(); null when it is free.
  KeyRecord* find(std::string_view key, Instant now);
  /// The record of a key that acquire() has just found busy. It is not moved while it has waiters.
  KeyRecord& busy(std::string_view key) { return records_.find(key)->second; }
  /// Ends leases that have expired, and serves those in front who fit. False when the key is free.
  bool refresh(KeyRecord& record, Instant now);
  /// Grants the key to those who have waited longest, as far as it has room. False if it is free then.
  bool handOver(KeyRecord& record, Instant now);

  /// Includes keys that are free.
  const StringMap<KeyRecord>& records() const { return records_; }

 private:
  /// How many records are kept although their keys are free.
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
