#include "lockkeeper/internal/lock_observer.h"
#include "lockkeeper/driver/inspection.h"

#include <algorithm>
#include <utility>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/holders.h"

namespace lockkeeper {

namespace {

constexpr std::chrono::minutes listBound{1};
constexpr std::chrono::seconds holdersBound{5};

// Who looks for days sees keys that are used once.
constexpr std::size_t mostFreed = 100'000;

Instant within(std::chrono::nanoseconds bound) { return saturatingAdd(systemClock()->now(), bound); }

// The end of a lease is calculated after the look that has seen it, and is late by as much.
constexpr std::chrono::milliseconds lateEnd{250};

void noteLease(SeenGrant& grant, Instant now) {
  const auto remaining = grant.holder.remaining;
  grant.end = remaining ? std::optional(saturatingAdd(now, *remaining)) : std::nullopt;
  grant.longest = std::max(grant.longest, remaining.value_or(std::chrono::milliseconds{0}));
}

bool hasExpired(const SeenGrant& grant, Instant lastLook, Instant now) {
  const auto leastLeft = grant.longest - grant.longest / 3;  // of a lease that is renewed, whenever one looks
  return grant.end && *grant.end <= now + lateEnd && leastLeft > now - lastLook + 2 * lateEnd;
}

/// What is known of one grant after another look. A store may show its owner cut, or not show its fence, for
/// a while.
Holder merged(const Holder& former, Holder present) {
  if (former.owner.starts_with(present.owner)) present.owner = former.owner;
  if (!present.fence) present.fence = former.fence;
  return present;
}

}  // namespace

std::optional<std::size_t> LockListing::waiting(const std::string& key) const {
  if (!tellsWaiters) return std::nullopt;
  const auto found = waiters.find(key);
  return found == waiters.end() ? 0 : found->second.size();
}

LockListing listLocks(LockDriver& driver, std::string_view prefix, const std::function<bool()>& goesOn) {
  auto* const browsable = capability<Browsable>(driver);
  if (browsable == nullptr) throw ConfigError("this store cannot list its locks");
  LockListing listing;
  std::vector<std::string> keys;
  std::vector<std::string> shared;
  const auto collect = [&](std::string_view key, const Holder& holder) {
    keys.emplace_back(key);
    if (holder.share) {
      shared.emplace_back(key);
    } else {
      listing.holders.insert_or_assign(HolderName(key, ""), holder);
    }
    return goesOn();
  };
  browsable->list(prefix, collect, within(listBound));
  for (const std::string& key : shared) {
    if (!goesOn()) return listing;
    for (Holder& each : holdersOf(driver, key, within(holdersBound))) {
      HolderName name(key, shareName(each));
      listing.holders.insert_or_assign(std::move(name), std::move(each));
    }
  }
  auto* const withWaiters = capability<WaiterBrowsable>(driver);
  listing.tellsWaiters = withWaiters != nullptr;
  if (withWaiters == nullptr || keys.empty() || !goesOn()) return listing;
  try {
    auto waiters = withWaiters->waiters(keys, within(listBound));
    for (std::size_t index = 0; index < keys.size(); ++index) {
      if (!waiters[index].empty()) listing.waiters.insert_or_assign(keys[index], std::move(waiters[index]));
    }
  } catch (const ConfigError&) {
    // Who may not see the queues sees the locks all the same.
    listing.tellsWaiters = false;
  }
  return listing;
}

std::vector<LockObserver::Change> LockObserver::compare(std::map<HolderName, Holder> holders, Instant now,
                                                        bool afterGap) {
  std::vector<Change> changes;
  auto former = std::exchange(held_, {});
  const Instant lastLook = std::exchange(lastLook_, now);
  for (auto& [name, holder] : holders) {
    const auto before = former.find(name);
    if (before != former.end() && sameGrant(before->second.holder, holder)) {
      SeenGrant& same = before->second;
      same.holder = merged(same.holder, std::move(holder));
      noteLease(same, now);
      held_.emplace(name, std::move(same));
      former.erase(before);
      continue;
    }
    SeenGrant grant{.id = ++lastId_,
                    .key = name.first,
                    .holder = std::move(holder),
                    .since = now,
                    .sinceBefore = afterGap,
                    .turns = 1};
    noteLease(grant, now);
    Change change{.kind = afterGap ? Kind::held : Kind::taken, .grant = {}};
    if (before != former.end()) {
      grant.turns += before->second.turns;
      names_.erase(before->second.id);
      change.kind = Kind::passed;
      change.expired = hasExpired(before->second, lastLook, now);
      change.former = std::move(before->second);
      former.erase(before);
    } else if (const auto freed = turns_.find(name.first); !grant.holder.share && freed != turns_.end()) {
      grant.turns += freed->second;
      turns_.erase(freed);
    }
    names_.emplace(grant.id, name);
    change.grant = held_.emplace(name, std::move(grant)).first->second;
    changes.push_back(std::move(change));
  }
  if (turns_.size() + former.size() > mostFreed) turns_.clear();
  for (auto& [name, grant] : former) {
    names_.erase(grant.id);
    if (!grant.holder.share) turns_[grant.key] = grant.turns;
    const bool expired = hasExpired(grant, lastLook, now);
    changes.push_back({.kind = Kind::freed, .grant = std::move(grant), .expired = expired});
  }
  std::ranges::stable_sort(changes, {},
                           [](const Change& each) -> const std::string& { return each.grant.key; });
  return changes;
}

void LockObserver::forget() noexcept {
  held_.clear();
  names_.clear();
  turns_.clear();
}

const SeenGrant* LockObserver::grant(std::uint64_t id) const {
  const auto name = names_.find(id);
  return name == names_.end() ? nullptr : &held_.at(name->second);
}

}  // namespace lockkeeper
