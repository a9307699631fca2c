#include "memory/lock_table.h"

#include <algorithm>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/permit/share.h"

namespace lockkeeper::detail {

void KeyRecord::checkLimit(const Claim& claim) const {
  if (isRefused(claim)) throwLimitsDisagree(claim.key, *claim.share, shares->limit());
}

Holder KeyRecord::holder(Instant now) const {
  if (shares) return shares->last().holder(now);
  return {
      .owner = owner, .remaining = std::chrono::ceil<std::chrono::milliseconds>(end - now), .fence = fence};
}

void KeyRecord::wakeWaiters(bool isNewlyShared) {
  const bool endsEarlier = nextEnd() < latestWakeUp;
  if (!endsEarlier && !isNewlyShared) return;
  for (KeyWaiter* waiter : waiters) {
    if (endsEarlier || isRefused(waiter->request.claim)) waiter->wakeUp.notify_one();
  }
  latestWakeUp = std::min(latestWakeUp, nextEnd());
}

Granted LockTable::grant(KeyRecord& record, const AcquireRequest& request, Instant now) {
  const Instant end = now + request.ttl;
  if (request.claim.share) return grantShare(record, request, now);
  record.owner = request.claim.owner;  // first: it may fail
  record.token = request.claim.token;
  record.fence = ++lastFence_;
  record.end = end;
  return {now, request.ttl, record.fence};
}

Granted LockTable::grantShare(KeyRecord& record, const AcquireRequest& request, Instant now) {
  const Share share = *request.claim.share;
  KeyShares first(share.limit);
  KeyShares& shares = record.shares ? *record.shares : first;
  if (lastFence_ == 0 || shares.isFullWith(share)) ++lastFence_;
  shares.add(request.claim.token, {.owner = std::string(request.claim.owner),
                                   .share = share,
                                   .fence = lastFence_,
                                   .number = ++grants_,
                                   .end = now + request.ttl});
  if (!record.shares) record.shares.emplace(std::move(first));
  return {now, request.ttl, lastFence_};
}

bool LockTable::handOver(KeyRecord& record, Instant now) {
  const bool wasShared = record.shares.has_value();
  while (!record.waiters.empty()) {
    KeyWaiter* next = record.waiters.front();
    if (!record.fits(next->request.claim.share, now)) break;
    try {
      next->granted = grant(record, next->request, now);
    } catch (...) {
      next->failure = std::current_exception();  // no memory: the one behind it may need none
    }
    record.waiters.pop_front();
    next->wakeUp.notify_one();
  }
  if (record.isFree(now)) {
    record.latestWakeUp = Instant::min();
    return false;
  }
  record.wakeWaiters(record.shares && !wasShared);
  return true;
}

bool LockTable::refresh(KeyRecord& record, Instant now) {
  if (now < record.nextEnd()) return true;
  if (record.shares) {
    record.shares->removeEnded(now);
    if (record.shares->empty()) record.shares.reset();
  }
  return handOver(record, now);
}

KeyRecord* LockTable::find(std::string_view key, Instant now) {
  const auto found = records_.find(key);
  return found == records_.end() || !refresh(found->second, now) ? nullptr : &found->second;
}

bool LockTable::free(const Claim& claim, Instant now) {
  const auto found = records_.find(claim.key);
  if (found == records_.end() || !refresh(found->second, now)) return false;
  KeyRecord& record = found->second;
  if (record.shares) {
    if (!record.shares->remove(claim.token)) return false;
    if (record.shares->empty()) record.shares.reset();
  } else {
    if (record.token != claim.token) return false;
    record.end = Instant::min();
  }
  if (!handOver(record, now) && records_.size() > fewRecords) records_.erase(found);
  return true;
}

// Keys that are free take memory: those that were released while there were few records, so that they need
// not be allocated again, and those whose leases ended unseen. Clear them away now and then.
void LockTable::sweep(Instant now) {
  if (records_.size() < sweepAt_) return;
  std::erase_if(records_,
                [&](const auto& entry) { return entry.second.isOver(now) && entry.second.waiters.empty(); });
  sweepAt_ = std::max(fewRecords, 2 * records_.size());
}

AcquireResult LockTable::acquire(const AcquireRequest& request, Instant now) {
  const auto found = records_.find(request.claim.key);
  if (found == records_.end()) {
    sweep(now);
    return grant(records_.try_emplace(std::string(request.claim.key)).first->second, request, now);
  }
  KeyRecord& record = found->second;
  if (!refresh(record, now)) return grant(record, request, now);
  if (record.shares) {
    if (record.shares->extend(request.claim.token, now + request.ttl))
      return Granted{now, request.ttl, record.shares->find(request.claim.token)->fence};
    record.checkLimit(request.claim);
    const bool isNext = request.ahead || record.waiters.empty();
    if (isNext && record.fits(request.claim.share, now)) {
      const Granted granted = grant(record, request, now);
      record.wakeWaiters();
      return granted;
    }
  } else if (record.token == request.claim.token) {
    record.end = now + request.ttl;
    return Granted{now, request.ttl, record.fence};
  }
  return Busy{std::chrono::ceil<std::chrono::milliseconds>(record.nextEnd() - now)};
}

RenewOutcome LockTable::renew(Renewal& renewal, Instant now) {
  KeyRecord* const record = find(renewal.claim.key, now);
  if (record == nullptr) return RenewOutcome::notOwner;
  if (record->shares) {
    if (!record->shares->extend(renewal.claim.token, now + renewal.ttl)) return RenewOutcome::notOwner;
  } else {
    if (record->token != renewal.claim.token) return RenewOutcome::notOwner;
    record->end = now + renewal.ttl;
  }
  record->wakeWaiters();
  renewal.leasedFrom = now;
  renewal.leasedFor = renewal.ttl;
  return RenewOutcome::renewed;
}

}  // namespace lockkeeper::detail
