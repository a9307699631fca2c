#include "console/lock_feed.h"

#include <algorithm>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/holders.h"
#include "lockkeeper/migration/migrating_driver.h"

namespace lockkeeper::poco {

namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds stateBound{1};  // the locks do not wait longer for it
constexpr std::size_t mostRecent = 30;
constexpr std::chrono::seconds usualPause{5};  // between two requests of a page: browsers delay timers
constexpr std::size_t longestFault = 300;
constexpr std::size_t longestRules = 400;
// An end that was calculated again from a later look differs by the time that a look takes.
constexpr std::int64_t sameEnd = 250;
constexpr std::size_t mostShownWaiters = 20;

// Instead of an end.
constexpr std::int64_t endUnknown = 0;
constexpr std::int64_t endless = -1;

std::int64_t endOf(const Holder& holder, Instant now) {
  if (holder.remaining) return inMilliseconds(now) + holder.remaining->count();
  return holder.endless ? endless : endUnknown;
}

bool isSameEnd(std::int64_t one, std::int64_t other) {
  if (one <= 0 || other <= 0) return one == other;
  return one < other ? other - one <= sameEnd : one - other <= sameEnd;
}

bool sameWaiter(const SeenWaiter& one, const SeenWaiter& other) {
  const auto apart = one.since < other.since ? other.since - one.since : one.since - other.since;
  return one.owner == other.owner && one.share == other.share && apart <= milliseconds{sameEnd};
}

/// Below 2^53 with the looks that are added: JavaScript holds a version as a number.
std::uint64_t randomEpoch() { return std::uint64_t{std::random_device{}() & 0xfffffU} << 32; }

}  // namespace

LockFeed::LockFeed(Source source) : source_(std::move(source)), epoch_(randomEpoch()) {}

std::string LockFeed::changesAfter(std::uint64_t seen) {
  {
    const std::unique_lock turn(looking_, std::try_to_lock);
    if (turn && systemClock()->now() >= nextLook_) look();
  }
  const std::lock_guard lock(mutex_);
  std::string changes;
  if (version_ - seen > recent_.size()) {
    changes = everything();
  } else {
    for (auto each = recent_.end() - static_cast<std::ptrdiff_t>(version_ - seen); each != recent_.end();
         ++each)
      appendItem(changes, *each);
  }
  return R"({"version":)" + std::to_string(version_) + R"(,"now":)" +
         std::to_string(inMilliseconds(systemClock()->now())) + R"(,"fault":)" + jsonStringOrNull(fault_) +
         R"(,"tookMs":)" + std::to_string(tookMs_) + R"(,"changes":[)" + changes + "]}";
}

std::optional<SeenGrant> LockFeed::grant(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const SeenGrant* const found = observer_.grant(id);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::string LockFeed::shownKey(const SeenGrant& grant) const { return source_.scope.shown(grant.key); }

void LockFeed::broken(const SeenGrant& grant) {
  const std::lock_guard lock(mutex_);
  note(grant, "broken", systemClock()->now(), false);
}

std::string LockFeed::activity(std::string_view shownKey) const {
  const std::lock_guard lock(mutex_);
  std::string migrations;
  if (migration_) migrations = migrationRow(migration_->name, migration_->rules, migration_->since);
  return R"({"latest":)" + timelines_.latest(source_.scope) + R"(,"timeline":)" +
         timelines_.entriesOf(shownKey, source_.scope) + R"(,"lost":)" + timelines_.losses(source_.scope) +
         R"(,"migrations":[)" + migrations + "]}";
}

void LockFeed::look() {
  const Instant began = systemClock()->now();
  std::optional<Found> found;
  std::string fault;
  try {
    found = list();
  } catch (const std::exception& error) {
    fault = printable(error.what(), longestFault);
  }
  const Instant now = systemClock()->now();
  // A store that takes long to answer shall have as much time for others.
  nextLook_ = std::max(began + source_.interval, now + (now - began));
  const bool afterGap = began >= gapBegins_;
  gapBegins_ = found ? nextLook_ + source_.interval + usualPause : Instant{};
  const std::lock_guard lock(mutex_);
  try {
    std::string change = found ? compare(*std::move(found), now, afterGap) : "{}";
    if (version_ != 0) recent_.push_back(std::move(change));
  } catch (const std::exception&) {  // memory is short
    forgetAll();
    gapBegins_ = Instant{};
    throw;
  }
  if (recent_.size() > mostRecent) recent_.pop_front();
  version_ = std::max(version_, epoch_) + 1;
  fault_ = std::move(fault);
  tookMs_ = std::chrono::duration_cast<milliseconds>(now - began).count();
}

void LockFeed::forgetAll() noexcept {
  observer_.forget();
  sent_.clear();
  waiters_.clear();
  recent_.clear();
  migration_.reset();
  version_ = std::max(version_, epoch_) + 1;  // pages get everything again
}

LockFeed::Found LockFeed::list() const {
  Found found;
  found.locks = listLocks(*source_.store, source_.scope.prefix, [] { return true; });
  const Instant now = systemClock()->now();
  for (const auto& [key, waiters] : found.locks.waiters) {
    std::vector<SeenWaiter>& seen = found.waiters[key];
    for (const Waiter& each : waiters) {
      seen.push_back({.owner = each.owner,
                      .share = each.share ? shareText(*each.share) : std::string(),
                      .since = now - each.waited.value_or(milliseconds{0})});
    }
  }
  found.migration = lookAtMigration();
  return found;
}

std::optional<SeenMigration> LockFeed::lookAtMigration() const {
  auto* const migrating = capability<migration::MigratingDriver>(*source_.store);
  if (migrating == nullptr) return std::nullopt;
  SeenMigration seen{.name = migrating->options().name};
  const Instant now = systemClock()->now();
  try {
    const migration::MigrationState state = migrating->state(saturatingAdd(now, stateBound));
    if (state.version == 0) {
      seen.rules = "none yet";
      return seen;
    }
    seen.rules = state.current.text();
    if (!(state.target == state.current)) {
      seen.rules += ", on the way to " + state.target.text();
    }
    seen.since = now - state.since;
  } catch (const Error& error) {
    seen.rules = std::string("not known: ") + error.what();
  }
  seen.rules = printable(seen.rules, longestRules);
  return seen;
}

std::string LockFeed::compare(Found found, Instant now, bool afterGap) {
  std::string rows;
  std::string ends;
  std::string gone;
  for (const auto& [kind, grant, former, expired] :
       observer_.compare(std::move(found.locks.holders), now, afterGap)) {
    const SeenGrant* const over = kind == LockObserver::Kind::freed ? &grant : former ? &*former : nullptr;
    if (over != nullptr) {
      note(*over, expired ? "expired" : "gone", now, afterGap);
      sent_.erase(over->id);
      appendItem(gone, std::to_string(over->id));
    }
    // After a gap, nobody knows since when.
    if (kind != LockObserver::Kind::freed && !afterGap) note(grant, "granted", now, afterGap);
  }
  for (const auto& [name, grant] : observer_.held()) {
    const Sent present{endOf(grant.holder, now), grant.holder.owner, grant.holder.fence.has_value()};
    const auto [place, isNew] = sent_.try_emplace(grant.id, present);
    Sent& sent = place->second;
    if (isNew || sent.owner != present.owner || sent.hasFence != present.hasFence) {
      sent = present;
      appendItem(rows, row(grant));
    } else if (!isSameEnd(present.endsAt, sent.endsAt)) {
      sent.endsAt = present.endsAt;
      appendItem(ends, jsonArray({std::to_string(grant.id), std::to_string(present.endsAt)}));
    }
  }
  migration_ = std::move(found.migration);
  return R"({"rows":[)" + rows + R"(],"ends":[)" + ends + R"(],"gone":[)" + gone + R"(],"queues":[)" +
         compareWaiters(std::move(found.waiters)) + "]}";
}

void LockFeed::note(const SeenGrant& grant, std::string_view what, Instant now, bool afterGap) {
  const auto held =
      what == "granted" ? std::nullopt : std::optional<std::chrono::nanoseconds>(now - grant.since);
  timelines_.add(grant.key, {.at = now,
                             .before = afterGap,
                             .what = what,
                             .detail = grant.holder.owner,
                             .fence = grant.holder.fence,
                             .took = held,
                             .isLoss = what == "expired" || what == "broken"});
}

std::string LockFeed::compareWaiters(std::map<std::string, std::vector<SeenWaiter>> found) {
  std::string queues;
  auto former = std::exchange(waiters_, std::move(found));
  for (auto& [key, waiters] : waiters_) {
    const auto before = former.find(key);
    if (before != former.end() && std::ranges::equal(before->second, waiters, sameWaiter)) {
      waiters = std::move(before->second);  // as the viewers know them
    } else {
      appendItem(queues, queue(key, waiters));
    }
    if (before != former.end()) former.erase(before);
  }
  for (const auto& [key, waiters] : former) appendItem(queues, queue(key, {}));
  return queues;
}

std::string LockFeed::everything() const {
  std::string rows;
  for (const auto& [name, grant] : observer_.held()) appendItem(rows, row(grant));
  std::string queues;
  for (const auto& [key, waiters] : waiters_) appendItem(queues, queue(key, waiters));
  return R"({"all":true,"rows":[)" + rows + R"(],"queues":[)" + queues + "]}";
}

// [key, how many wait, the first of them as [owner, since, share]].
std::string LockFeed::queue(const std::string& key, const std::vector<SeenWaiter>& waiters) const {
  std::string first;
  for (const SeenWaiter& each : std::span(waiters).first(std::min(waiters.size(), mostShownWaiters))) {
    appendItem(first, "[" + jsonStringOrNull(each.owner) + "," + std::to_string(inMilliseconds(each.since)) +
                          (each.share.empty() ? "" : "," + jsonString(each.share)) + "]");
  }
  return "[" + jsonString(source_.scope.shown(key)) + "," + std::to_string(waiters.size()) + ",[" + first +
         "]]";
}

// [number, key, owner, since, whether it may be older, end, fence, share]: a fence is a text, since it may be
// more than a number of JavaScript can hold.
std::string LockFeed::row(const SeenGrant& grant) const {
  const Holder& holder = grant.holder;
  const auto sent = sent_.find(grant.id);
  return "[" + std::to_string(grant.id) + "," + jsonString(source_.scope.shown(grant.key)) + "," +
         jsonStringOrNull(holder.owner) + "," + std::to_string(inMilliseconds(grant.since)) + "," +
         (grant.sinceBefore ? "1" : "0") + "," +
         std::to_string(sent == sent_.end() ? endUnknown : sent->second.endsAt) + "," +
         (holder.fence ? "\"" + std::to_string(*holder.fence) + "\"" : "null") +
         (holder.share ? "," + jsonString(shareText(*holder.share)) : "") + "]";
}

}  // namespace lockkeeper::poco
