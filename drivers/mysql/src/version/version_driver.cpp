#include "lockkeeper/mysql/version_driver.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "lockkeeper/error.h"
#include "session/reply_fault.h"
#include "version/version_impl.h"

namespace lockkeeper::mysql {
namespace {

constexpr std::chrono::minutes clearEvery{1};
// The caller waits, and his release has been answered. Not much less for an answer: it would close sessions
// of a slow server.
constexpr std::chrono::milliseconds clearingTime{100};
constexpr std::chrono::milliseconds longestClearing{500};

Preparation preparationOf(const VersionOptions& options) {
  return {.schema = schemaOf(options.table),
          .schemaFile = "version.sql",
          .readTable = LockTable::read(options.table),
          .namesClient = true,
          .tellsDurability = true};
}

}  // namespace

VersionDriver::Impl::Impl(const VersionOptions& options, const StoreUri& uri, const Environment& environment)
    : rates(uri, environment),
      texts_(options.table),
      sharesSchema_(options.createTable ? sharesSchemaOf(options.table) : ""),
      opener_(options, preparationOf(options), environment),
      pool_(opener_, options.connections),
      waiting_(opener_, options.connections),
      cancelling_(opener_, 1),
      unusedRows_(unusedRows(texts_), *environment.random) {}

AcquireResult VersionDriver::Impl::resultOf(const AcquireRequest& request, const LockTable::Answer& answer,
                                            Instant leasedFrom) {
  if (const auto* fences = std::get_if<LockTable::Fences>(&answer))
    return Granted{leasedFrom, request.ttl, fences->first, fences->count};
  return Busy{std::chrono::ceil<std::chrono::milliseconds>(std::get<std::chrono::microseconds>(answer))};
}

AcquireResult VersionDriver::Impl::acquire(const AcquireRequest& request, LockTexts::Standing standing) {
  return onTables(request.deadline, [&](Tables& tables) { return acquire(tables, request, standing); });
}

AcquireResult VersionDriver::Impl::acquire(Tables& tables, const AcquireRequest& request,
                                           LockTexts::Standing standing) {
  while (true) {
    try {
      if (request.claim.share) return acquireShare(tables, request, standing);
      const Instant leasedFrom = clock().now();
      const auto answer = tables.locks.claim(request.claim, request.ttl, request.localHolders, standing);
      return resultOf(request, answer, leasedFrom);
    } catch (const RowDeadlock&) {
      // Those who wait for a row that is deleted, because it was unused for long, may wait for each other.
      // What was undone is as if it had never been asked for, and one of them has gone on.
      if (clock().now() >= request.deadline) throw;
    }
  }
}

AcquireResult VersionDriver::Impl::acquireShare(Tables& tables, const AcquireRequest& request,
                                                LockTexts::Standing standing) {
  if (!sharesAreChecked_) tables.shares.check(sharesSchema_);
  sharesAreChecked_ = true;
  const Instant leasedFrom = clock().now();
  const Claim& claim = request.claim;
  // An upgrade has a share of the key already.
  if (!request.ahead) {
    const auto lone = tables.locks.claimLone(claim, request.ttl, standing);
    const auto* const wait = std::get_if<std::chrono::microseconds>(&lone);
    if (wait == nullptr || wait->count() > 0) return resultOf(request, lone, leasedFrom);
  }
  const ShareTable::Answer answer = tables.shares.claim(request, standing);
  if (answer.granted) return Granted{leasedFrom, request.ttl, answer.fence};
  if (answer.limit && *answer.limit != claim.share->limit)
    throwLimitsDisagree(claim.key, *claim.share, *answer.limit);
  return Busy{std::chrono::ceil<std::chrono::milliseconds>(answer.wait)};
}

void VersionDriver::Impl::clearEndedShares(Instant deadline) noexcept {
  const Instant now = clock().now();
  Instant due = nextClearing_;
  if (now < due || !nextClearing_.compare_exchange_strong(due, now + clearEvery)) return;
  try {
    onTables(std::min(deadline, now + longestClearing), [&](Tables& tables) {
      tables.shares.clearEnded(now + clearingTime);
      return true;
    });
  } catch (const std::exception&) {
  }
}

VersionDriver::VersionDriver(const StoreUri& uri, const Environment& environment)
    : impl_(std::make_unique<Impl>(uri, environment)) {}

VersionDriver::~VersionDriver() {
  // Closing an inherited session properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

AcquireResult VersionDriver::acquire(const AcquireRequest& request) {
  using enum LockTexts::Standing;
  return impl_->acquire(request, request.ahead ? upgrade : newcomer);
}

AcquireResult VersionDriver::acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                                            std::stop_token stop) {
  return impl_->acquireWaiting(request, waitFor, stop);
}

std::vector<AcquireResult> VersionDriver::acquireInOrder(std::span<const AcquireRequest> requests) {
  return impl_->onTables(requests.front().deadline, [&](Impl::Tables& tables) {
    const Instant leasedFrom = impl_->clock().now();
    std::vector<AcquireResult> results;
    for (const auto& each : tables.locks.claimInOrder(requests, impl_->cancelling()))
      results.push_back(Impl::resultOf(requests[results.size()], each, leasedFrom));
    return results;
  });
}

void VersionDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  impl_->renew(renewals, deadline);
}

ReleaseOutcome VersionDriver::release(const Claim& claim, Instant deadline) {
  const bool released = impl_->onTables(deadline, [&](Impl::Tables& tables) {
    return tables.locks.release(claim) || (claim.share && tables.shares.release(claim));
  });
  if (claim.share) impl_->clearEndedShares(deadline);
  impl_->clearAfter(1, deadline);
  return released ? ReleaseOutcome::released : ReleaseOutcome::notOwner;
}

std::vector<ReleaseOutcome> VersionDriver::releaseAll(std::span<const Claim> claims, Instant deadline) {
  std::vector<ReleaseOutcome> outcomes = impl_->onTables(deadline, [&](Impl::Tables& tables) {
    std::vector<ReleaseOutcome> found;
    for (const bool released : tables.locks.releaseAll(claims, impl_->cancelling()))
      found.push_back(released ? ReleaseOutcome::released : ReleaseOutcome::notOwner);
    return found;
  });
  impl_->clearAfter(claims.size(), deadline);
  return outcomes;
}

std::optional<Holder> VersionDriver::holder(std::string_view key, Instant deadline) {
  return impl_->onTables(deadline, [&](Impl::Tables& tables) -> std::optional<Holder> {
    const auto held = tables.locks.held(key);
    if (!held) return std::nullopt;
    if (!held->inShares) return held->holder;
    // Nobody has it when it was freed meanwhile.
    auto holders = tables.shares.longest({key});
    return holders.empty() ? std::nullopt : std::optional(std::move(holders.begin()->second));
  });
}

void* VersionDriver::findCapability(const std::type_info& type) noexcept {
  if (type == typeid(RateDriver)) return static_cast<RateDriver*>(&impl_->rates);
  return capabilityOf<Waitable, Batchable, BatchReleasing, Browsable, Breakable, Permits>(*this, type);
}

std::string VersionDriver::name() const { return impl_->display(); }

Promises VersionDriver::promises() const {
  impl_->forkGuard.check();
  return impl_->promises();
}

void VersionDriver::list(std::string_view prefix,
                         const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                         Instant deadline) {
  std::string last;
  for (;;) {
    const auto page = impl_->onTables(deadline, [&](Impl::Tables& tables) {
      auto found = tables.locks.page(prefix, last);
      std::set<std::string_view> shared;
      for (const LockTable::Held& each : found) {
        if (each.inShares) shared.insert(each.key);
      }
      if (shared.empty()) return found;
      const auto holders = tables.shares.longest(shared);
      for (LockTable::Held& each : found) {
        if (const auto holder = holders.find(each.key); holder != holders.end()) each.holder = holder->second;
      }
      return found;
    });
    if (page.empty()) return;
    for (const LockTable::Held& each : page) {
      if (!visit(each.key, each.holder)) return;
    }
    last = page.back().key;
  }
}

bool VersionDriver::breakLock(std::string_view key, Instant deadline, const Holder* shown) {
  return impl_->onTables(deadline, [&](Impl::Tables& tables) {
    if (shown != nullptr && shown->share) return tables.shares.breakShare(key, shown->grantId);
    if (tables.locks.breakLock(key, shown == nullptr ? std::nullopt : shown->fence)) return true;
    if (shown != nullptr) return false;
    const auto held = tables.locks.held(key);
    return held && held->shared() && tables.shares.breakAll(key);
  });
}

std::vector<Holder> VersionDriver::shareHolders(std::string_view key, Instant deadline) {
  return impl_->onTables(deadline, [&](Impl::Tables& tables) {
    // The table of shares may not exist where nobody uses it.
    const auto held = tables.locks.held(key);
    if (!held || !held->shared()) return std::vector<Holder>();
    return held->inShares ? tables.shares.holders(key) : std::vector<Holder>{held->holder};
  });
}

bool VersionDriver::resize(std::string_view key, std::uint32_t limit, Instant deadline) {
  return impl_->onTables(deadline, [&](Impl::Tables& tables) {
    const auto held = tables.locks.held(key);
    return held && held->shared() && tables.shares.resize(key, limit);
  });
}

void VersionDriver::Impl::renew(std::span<Renewal> renewals, Instant deadline) {
  std::vector<Renewal*> whole;
  std::vector<Renewal*> shares;
  whole.reserve(renewals.size());
  for (Renewal& each : renewals) (each.claim.share ? shares : whole).push_back(&each);
  renew(whole, &Tables::locks, deadline);
  renewShares(shares, deadline);
}

template <class Table>
void VersionDriver::Impl::renew(std::span<Renewal* const> renewals, Table Tables::*table, Instant deadline) {
  for (Renewal* each : renewals) each->outcome = RenewOutcome::unavailable;
  for (auto rest = renewals; !rest.empty();) {
    const auto batch = rest.first(std::min(rest.size(), LeaseRows::renewalsAtOnce));
    rest = rest.subspan(batch.size());
    try {
      onTables(deadline, [&](Tables& tables) {
        const Instant leasedFrom = clock().now();
        for (Renewal* each : batch) {
          each->leasedFrom = leasedFrom;
          each->leasedFor = each->ttl;
        }
        (tables.*table).renew(batch, cancelling());
        return true;
      });
    } catch (const Error& error) {
      for (Renewal* each : batch) {
        if (error.code() == ErrorCode::outcomeUnknown) each->outcome = RenewOutcome::unknown;
        each->cause = error.what();
      }
    }
  }
}

// Those that are alone are looked up first: an update of the table of locks would wait for rows of the
// others.
void VersionDriver::Impl::renewShares(std::span<Renewal* const> renewals, Instant deadline) {
  for (auto rest = renewals; !rest.empty();) {
    const auto batch = rest.first(std::min(rest.size(), LeaseRows::renewalsAtOnce));
    rest = rest.subspan(batch.size());
    std::vector<Renewal*> alone;
    std::vector<Renewal*> others;
    try {
      const auto tokens = onTables(deadline, [&](Tables& tables) { return tables.locks.heldOf(batch); });
      for (Renewal* each : batch) (tokens.contains(each->claim.token.hex()) ? alone : others).push_back(each);
    } catch (const Error& error) {
      for (Renewal* each : batch) {
        each->outcome = RenewOutcome::unavailable;
        each->cause = error.what();
      }
    }
    renew(alone, &Tables::locks, deadline);
    // Some may have moved since; none moves back.
    for (Renewal* each : alone) {
      if (each->outcome == RenewOutcome::notOwner) others.push_back(each);
    }
    renew(others, &Tables::shares, deadline);
  }
}

}  // namespace lockkeeper::mysql
