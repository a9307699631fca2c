#include "lockkeeper/mysql/version_driver.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "hosts/session_opener.h"
#include "hosts/session_pool.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/error.h"
#include "lockkeeper/mysql/rate_table.h"
#include "session/reply_fault.h"
#include "session/wake_up.h"
#include "upkeep/unused_rows.h"
#include "version/given_up_sessions.h"
#include "version/lock_table.h"
#include "version/queue_place.h"
#include "version/share_table.h"
#include "version/texts/lock_texts.h"
#include "version/version_options.h"

namespace lockkeeper::mysql {
namespace {

constexpr std::chrono::minutes clearEvery{1};
// The caller waits, and his release has been answered. Not much less for an answer: it would close sessions
// of a slow server.
constexpr std::chrono::milliseconds clearingTime{100};
constexpr std::chrono::milliseconds longestClearing{500};

// The first in a queue looks whether the key has changed hands: soon after it has come to be the first, since
// most keys are held for a short time.
constexpr std::chrono::milliseconds shortestPause{2};
constexpr std::chrono::milliseconds longestPause{50};
// It has to write its mark long before that ends, and at least so often.
constexpr std::chrono::milliseconds markEvery{400};
static_assert(2 * markEvery < priority && priority - markEvery < newMark);
// Somebody may keep the row from others for a moment. After so many failures in a row, the caller hears of
// it.
constexpr int mostContentions = 3;

AcquireResult resultOf(const AcquireRequest& request, const LockTable::Answer& answer, Instant leasedFrom) {
  if (const auto* fences = std::get_if<LockTable::Fences>(&answer))
    return Granted{leasedFrom, request.ttl, fences->first, fences->count};
  return Busy{std::chrono::ceil<std::chrono::milliseconds>(std::get<std::chrono::microseconds>(answer))};
}

}  // namespace

/// The sessions, and what the driver's operations share.
class VersionDriver::Impl {
 public:
  Impl(const StoreUri& uri, const Environment& environment)
      : Impl(VersionOptions::fromUri(uri), uri, environment) {}
  Impl(const VersionOptions& options, const StoreUri& uri, const Environment& environment)
      : rates(uri, environment),
        texts_(options.table),
        opener_(options,
                {.schema = schemaOf(options.table, false),
                 .schemaFile = "version.sql",
                 .readTable = LockTable::read(options.table),
                 .namesClient = true,
                 .tells = true},
                environment),
        pool_(opener_, options.connections),
        waiting_(opener_, options.connections),
        cancelling_(opener_, 1),
        unusedRows_(unusedRows(texts_), *environment.random) {}

  Clock& clock() { return opener_.clock(); }
  const std::string& display() const { return opener_.display(); }
  Promises promises() const { return {opener_.fencePromise(), opener_.durability()}; }

  /// For what must not wait until one of the others is free.
  SessionPool& cancelling() { return cancelling_; }

  /// The tables, on one session.
  struct Tables {
    LockTable locks;
    ShareTable shares;
  };
  /// Lets `call` use them until `deadline`. Throws lockkeeper's errors.
  template <class Call>
  auto onTables(Instant deadline, Call call);

  /// One attempt. With `Tables`, whose deadline it is.
  AcquireResult acquire(Tables& tables, const AcquireRequest& request, LockTexts::Standing standing);
  AcquireResult acquire(const AcquireRequest& request, LockTexts::Standing standing);
  /// In the queue of the key, on a session of its own.
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                               const std::stop_token& stop);

  /// Checks that the table of shares can be used, unless that is known.
  void prepareShares(Tables& tables);

  void clearAfter(std::size_t releases, Instant deadline) noexcept {
    unusedRows_.clearAfter(releases, pool_, deadline);
  }
  /// Now and then, deletes what those have left behind who died with a share of a key that nobody shares any
  /// more. What goes wrong then is none of the caller's business.
  void clearEndedShares(Instant deadline) noexcept;

  /// Renews leases in one of the tables, and writes the outcome of each: `unavailable` of those about which
  /// nothing was heard.
  template <class Table>
  void renew(std::span<Renewal* const> renewals, Table Tables::*table, Instant deadline);
  /// The same for shares, each in the table where it is.
  void renewShares(std::span<Renewal* const> renewals, Instant deadline);

  const ForkGuard forkGuard;
  RateTable rates;

 private:
  AcquireResult acquireWhole(Tables& tables, const AcquireRequest& request, LockTexts::Standing standing);
  AcquireResult acquireShare(Tables& tables, const AcquireRequest& request, LockTexts::Standing standing);
  /// Asks for the key, as the first in its queue or ahead of it, until it is granted or the wait is over.
  AcquireResult askUntilGranted(SessionPool::Use& session, const QueuePlace& place, AcquireRequest request,
                                LockTexts::Standing standing, Instant until, const std::stop_token& stop,
                                const WakeUp& wakeUp);

  const LockTexts texts_;
  SessionOpener opener_;
  std::atomic<bool> sharesArePrepared_ = false;
  std::atomic<bool> makesShares_ = false;  // one thread at a time
  SessionPool pool_;
  SessionPool waiting_;
  SessionPool cancelling_;
  GivenUpSessions givenUp_;
  UnusedRows unusedRows_;
  std::atomic<Instant> nextClearing_{Instant::min()};
};

template <class Call>
auto VersionDriver::Impl::onTables(Instant deadline, Call call) {
  forkGuard.check();
  if (clock().now() >= deadline) throw StoreUnavailable(opener_.display() + ": no time was left to ask");
  SessionPool::Use session(pool_, deadline);
  givenUp_.end(session, deadline);
  Tables tables{{session, texts_, deadline}, {session, texts_, deadline}};
  try {
    auto result = call(tables);
    session.keep();
    return result;
  } catch (const OutcomeUnknown&) {
    givenUp_.add(session);
    throw;
  }
}

// Two that make it at the same time could end the claim of a third one.
void VersionDriver::Impl::prepareShares(Tables& tables) {
  if (sharesArePrepared_) return;
  const bool create = opener_.options().createTable;
  if (create && makesShares_.exchange(true)) return;
  try {
    sharesArePrepared_ = tables.shares.prepare(create);
  } catch (...) {
    makesShares_ = false;
    throw;
  }
  makesShares_ = false;
}

AcquireResult VersionDriver::Impl::acquire(Tables& tables, const AcquireRequest& request,
                                           LockTexts::Standing standing) {
  while (true) {
    try {
      return request.claim.share ? acquireShare(tables, request, standing)
                                 : acquireWhole(tables, request, standing);
    } catch (const RowDeadlock&) {
      // Those who wait for a row that is deleted, because it was unused for long, may wait for each other.
      // What was undone is as if it had never been asked for, and one of them has gone on.
      if (clock().now() >= request.deadline) throw;
    }
  }
}

AcquireResult VersionDriver::Impl::acquireWhole(Tables& tables, const AcquireRequest& request,
                                                LockTexts::Standing standing) {
  const Instant leasedFrom = clock().now();
  return resultOf(request, tables.locks.claim(request.claim, request.ttl, request.localHolders, standing),
                  leasedFrom);
}

AcquireResult VersionDriver::Impl::acquire(const AcquireRequest& request, LockTexts::Standing standing) {
  return onTables(request.deadline, [&](Tables& tables) { return acquire(tables, request, standing); });
}

AcquireResult VersionDriver::Impl::acquireShare(Tables& tables, const AcquireRequest& request,
                                                LockTexts::Standing standing) {
  prepareShares(tables);
  const Instant leasedFrom = clock().now();
  const Claim& claim = request.claim;
  // One that is ahead has a share of the key already.
  if (!request.ahead) {
    const auto lone = tables.locks.claimLone(claim, request.ttl, standing);
    const auto* const wait = std::get_if<std::chrono::microseconds>(&lone);
    if (wait == nullptr || wait->count() > 0) return resultOf(request, lone, leasedFrom);
  }
  try {
    const ShareTable::Answer answer = tables.shares.claim(request, standing);
    if (answer.granted) return Granted{leasedFrom, request.ttl, answer.fence};
    if (answer.limit && *answer.limit != claim.share->limit)
      throwLimitsDisagree(claim.key, *claim.share, *answer.limit);
    return Busy{std::chrono::ceil<std::chrono::milliseconds>(answer.wait)};
  } catch (const NoSuchTable&) {
    sharesArePrepared_ = false;
    if (!opener_.options().createTable) throw;
  }
  throw StoreUnavailable(opener_.display() + ": the table of shares is not there yet");
}

AcquireResult VersionDriver::Impl::acquireWaiting(const AcquireRequest& request,
                                                  std::chrono::nanoseconds waitFor,
                                                  const std::stop_token& stop) {
  using enum LockTexts::Standing;
  const Instant until = saturatingAdd(clock().now(), waitFor);
  // Most keys that others have waited for lately are free by now.
  AcquireResult result = acquire(request, request.ahead ? ahead : newcomer);
  if (std::holds_alternative<Granted>(result) || stop.stop_requested() || clock().now() >= until) {
    return result;
  }
  const auto standing = request.ahead ? aheadAndWaits : first;
  std::optional<SessionPool::Use> session;
  try {
    session.emplace(waiting_, request.deadline, clock().now());
    givenUp_.end(*session, request.deadline);
  } catch (const StoreUnavailable&) {
    return acquire(request, standing);
  }
  const WakeUp wakeUp(stop);
  QueuePlace place(
      *session, cancelling_, queueName(opener_.options().database, texts_.table, request.claim.key),
      opener_.options().ioTimeout, opener_.options().hosts.size() > 1 || session->session().inGroup());
  if (!request.ahead && !place.enter(request.deadline, until, stop, wakeUp)) return Busy{};
  const auto leave = [&] {
    place.leave();
    session->keep();
  };
  try {
    result = askUntilGranted(*session, place, request, standing, until, stop, wakeUp);
    leave();
    return result;
  } catch (const Contention&) {
    leave();  // The server answers.
    throw;
  } catch (const ConfigError&) {
    leave();
    throw;
  } catch (const OutcomeUnknown&) {
    givenUp_.add(*session);
    throw;
  }
}

// Looks rather than claims: a claim keeps the row from others, and with its mark it is a commit.
AcquireResult VersionDriver::Impl::askUntilGranted(SessionPool::Use& session, const QueuePlace& place,
                                                   AcquireRequest request, LockTexts::Standing standing,
                                                   Instant until, const std::stop_token& stop,
                                                   const WakeUp& wakeUp) {
  const std::string_view key = request.claim.key;
  std::string seen;
  Instant askAgain = Instant::min();
  std::exception_ptr contention;  // what the last attempt came to
  int contentions = 0;            // in a row
  for (auto pause = shortestPause;; pause = std::min(2 * pause, longestPause)) {
    place.checkServer();
    const Instant deadline = clock().now() + opener_.options().ioTimeout;
    Tables tables{{session, texts_, deadline}, {session, texts_, deadline}};
    const auto unmark = [&] {
      try {
        tables.locks.unmark(key, standing);
      } catch (const Error&) {
        session.close();  // The mark ends by itself.
      }
    };
    std::string present = tables.locks.look(key);
    if (present != seen || clock().now() >= askAgain) {
      seen = std::move(present);
      std::chrono::milliseconds wait = markEvery;
      try {
        const AcquireResult result = acquire(tables, request, standing);
        const auto* const busy = std::get_if<Busy>(&result);
        if (busy == nullptr) return result;
        contention = nullptr;
        contentions = 0;
        wait = std::clamp(busy->retryAfter.value_or(markEvery), shortestPause, markEvery);
        request.resend = false;
      } catch (const Contention&) {
        if (++contentions == mostContentions) throw;
        contention = std::current_exception();
      } catch (const ConfigError&) {
        unmark();
        throw;
      }
      askAgain = clock().now() + wait;
    }
    if (clock().now() >= until || stop.stop_requested()) {
      if (contention) std::rethrow_exception(contention);
      unmark();
      return Busy{};
    }
    session.session().await(std::min({until, askAgain, clock().now() + pause}), wakeUp.file());
  }
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

VersionDriver::VersionDriver(const StoreUri& uri, const Environment& environment)
    : impl_(std::make_unique<Impl>(uri, environment)) {}

VersionDriver::~VersionDriver() {
  // Closing an inherited session properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

AcquireResult VersionDriver::acquire(const AcquireRequest& request) {
  using enum LockTexts::Standing;
  return impl_->acquire(request, request.ahead ? ahead : newcomer);
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
      results.push_back(resultOf(requests[results.size()], each, leasedFrom));
    return results;
  });
}

void VersionDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  std::vector<Renewal*> whole;
  std::vector<Renewal*> shares;
  whole.reserve(renewals.size());
  for (Renewal& each : renewals) (each.claim.share ? shares : whole).push_back(&each);
  impl_->renew(whole, &Impl::Tables::locks, deadline);
  impl_->renewShares(shares, deadline);
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

}  // namespace lockkeeper::mysql
