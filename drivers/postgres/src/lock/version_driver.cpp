#include "lockkeeper/postgres/version_driver.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>
#include <variant>

#include "limit/rate_table.h"
#include "lock/lock_table.h"
#include "lock/lock_texts.h"
#include "lock/wake_ups.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/base/hex.h"
#include "lockkeeper/base/loss_listeners.h"
#include "lockkeeper/error.h"
#include "records/shared_records.h"
#include "schema.h"
#include "schema_tables.h"
#include "session/server_options.h"
#include "session/sessions.h"

namespace lockkeeper::postgres {
namespace {

using std::chrono::milliseconds;

// A place in the queue is kept for so long, and asked for again so often.
constexpr milliseconds placeStays{3000};
constexpr milliseconds markEvery{1000};
// Of one that waits and is not notified.
constexpr milliseconds shortestPause{2};
constexpr milliseconds firstPoll{20};
constexpr milliseconds longestPoll{200};
// Others may keep a row for a moment. After so many failures in a row, the caller hears of it.
constexpr int mostContentions = 3;
constexpr std::uint32_t releasesBetweenClearings = 128;
constexpr milliseconds longestClearing{300};
// How often the hosts are asked who takes the writes, or, if there is one, notifications are read.
constexpr milliseconds checkHostsEvery{2000};
constexpr milliseconds hearEvery{1000};
// How often a single host, which may be a name, is asked by a new session whether it is the same server
// still.
constexpr milliseconds connectEvery{10'000};

// A row that others kept for a while has used up too much of the lease.
bool isOldGrant(const Granted& granted, const AcquireRequest& request, Instant now) {
  return now - granted.leasedFrom > request.ttl / 4;
}

}  // namespace

/// What the driver's operations share.
class VersionDriver::Impl {
 public:
  Impl(const ServerOptions& options, const std::string& tableName, const Environment& environment)
      : texts(options.schema, tableName),
        sessions(options, namedTables(versionSchema, "version.sql", options.schema, tableName), environment),
        rates(options, environment),
        records(options, tableName, environment) {
    sessions.onNewPrimary([this] { doubts.claimsInDoubt(); });
  }

  Clock& clock() { return sessions.clock(); }
  AcquireResult wait(AcquireRequest request, Instant until, const std::stop_token& stop);
  void renew(std::span<Renewal* const> renewals, bool isShares, Instant deadline);
  void clearAfter(std::size_t releases, Instant deadline) noexcept;
  void lookForPrimary(Instant deadline);

  const ForkGuard forkGuard;
  const LockTexts texts;
  LossListeners doubts;
  LossListeners losses;
  Sessions sessions;
  LockTable table{sessions, texts};
  WakeUps wakeUps{sessions, texts.channel};
  RateTable rates;
  PostgresRecords records;

 private:
  [[noreturn]] static void throwWaiting(const StoreUnavailable& error, const Place& place);
  void leaveQueue(const Claim& claim, Instant deadline);
  void pause(const Busy& busy, const Place& place, milliseconds& poll, Instant until,
             const std::stop_token& stop);

  std::atomic<std::uint32_t> released_ = 0;
  std::atomic<Instant> nextLook_{};  // Of a single host.
};

VersionDriver::VersionDriver(const StoreUri& uri, const Environment& environment)
    : impl_(std::make_unique<Impl>(ServerOptions::fromUri(uri, {"table"}), tableOf(uri), environment)) {}

VersionDriver::~VersionDriver() {
  // Closing an inherited session properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

AcquireResult VersionDriver::acquire(const AcquireRequest& request) {
  impl_->forkGuard.check();
  return impl_->table.claim(request, request.ahead ? Place(aheadOfAll) : Place());
}

AcquireResult VersionDriver::acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                                            std::stop_token stop) {
  impl_->forkGuard.check();
  const Instant until = saturatingAdd(impl_->clock().now(), waitFor);
  if (!request.resend) {
    AcquireResult result = acquire(request);
    if (std::holds_alternative<Granted>(result) || stop.stop_requested() || impl_->clock().now() >= until)
      return result;
  }
  return impl_->wait(request, until, stop);
}

AcquireResult VersionDriver::Impl::wait(AcquireRequest request, Instant until, const std::stop_token& stop) {
  struct Listening {
    Listening(WakeUps& itsWakeUps, Instant deadline) : wakeUps(itsWakeUps) { wakeUps.listen(deadline); }
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;
    ~Listening() { wakeUps.unlisten(place, isGranted); }

    WakeUps& wakeUps;
    std::optional<std::int64_t> place{};
    bool isGranted = false;
  } listening(wakeUps, request.deadline);
  milliseconds poll = firstPoll;
  Instant nextMark{};
  int contentions = 0;
  while (true) {
    Busy busy{};
    const Instant now = clock().now();
    if (listening.place) request.deadline = now + sessions.options().ioTimeout;
    try {
      if (now >= nextMark) {
        const std::int64_t place = table.enterQueue(request.claim, request.ahead, placeStays,
                                                    request.deadline, listening.place.has_value());
        if (!listening.place) wakeUps.add(place);
        listening.place = place;
        nextMark = now + markEvery;
      }
      const AcquireResult result = table.claim(request, listening.place);
      listening.isGranted = std::holds_alternative<Granted>(result);
      if (listening.isGranted && !isOldGrant(std::get<Granted>(result), request, clock().now()))
        return result;
      if (listening.isGranted)
        return table.claim(request, listening.place);  // The same again, for a full ttl.
      busy = std::get<Busy>(result);
      contentions = 0;
    } catch (const Contention& error) {
      if (++contentions == mostContentions) throwWaiting(error, listening.place);
      busy.retryAfter = firstPoll;
    } catch (const StoreUnavailable& error) {
      throwWaiting(error, listening.place);
    } catch (const ConfigError&) {
      try {
        leaveQueue(request.claim, request.deadline);
      } catch (const Error&) {
        // The place ends by itself.
      }
      throw;
    }
    if (clock().now() < until && !stop.stop_requested()) {
      pause(busy, listening.place, poll, std::min(until, nextMark), stop);
      continue;
    }
    leaveQueue(request.claim, clock().now() + sessions.options().ioTimeout);
    return Busy{};
  }
}

// Whoever comes back with the same token finds its place. With another one, it would wait behind that.
void VersionDriver::Impl::throwWaiting(const StoreUnavailable& error, const Place& place) {
  if (!place) throw;
  throw OutcomeUnknown(std::string(error.what()) + "; the claim may still be in the queue");
}

void VersionDriver::Impl::leaveQueue(const Claim& claim, Instant deadline) {
  try {
    table.leaveQueue(claim, deadline);
  } catch (const Error& error) {
    throw WithdrawalUnknown(std::string(error.what()) + "; the claim may still be in the queue");
  }
}

// Until it is this one's turn, as far as can be known.
void VersionDriver::Impl::pause(const Busy& busy, const Place& place, milliseconds& poll, Instant until,
                                const std::stop_token& stop) {
  const Instant now = clock().now();
  if (busy.retryAfter) until = std::min(until, saturatingAdd(now, std::max(*busy.retryAfter, shortestPause)));
  if (place && wakeUps.await(*place, until, stop)) return;
  until = std::min(until, now + poll);
  poll = std::min(2 * poll, longestPoll);
  std::mutex mutex;
  std::condition_variable stopped;
  const std::stop_callback wake(stop, [&] {
    const std::lock_guard held(mutex);
    stopped.notify_all();
  });
  std::unique_lock held(mutex);
  while (!stop.stop_requested() && clock().now() < until) clock().wait(held, stopped, until);
}

std::vector<AcquireResult> VersionDriver::acquireInOrder(std::span<const AcquireRequest> requests) {
  impl_->forkGuard.check();
  return impl_->table.claimInOrder(requests);
}

void VersionDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  std::vector<Renewal*> wholes;
  std::vector<Renewal*> shares;
  for (Renewal& each : renewals) (each.claim.share ? shares : wholes).push_back(&each);
  impl_->renew(wholes, false, deadline);
  impl_->renew(shares, true, deadline);
  impl_->wakeUps.tidyUp();
}

void VersionDriver::Impl::renew(std::span<Renewal* const> renewals, bool isShares, Instant deadline) {
  try {
    table.renew(renewals, isShares, deadline);
  } catch (const Error& error) {
    const bool isUnknown = error.code() == ErrorCode::outcomeUnknown || error.code() == ErrorCode::protocol;
    for (Renewal* each : renewals) {
      each->outcome = isUnknown ? RenewOutcome::unknown : RenewOutcome::unavailable;
      each->cause = error.what();
    }
  }
}

ReleaseOutcome VersionDriver::release(const Claim& claim, Instant deadline) {
  impl_->forkGuard.check();
  const bool isReleased = impl_->table.release(claim, deadline);
  // It may have waited, and its caller has given up without seeing the end of that.
  if (!isReleased) impl_->table.leaveQueue(claim, deadline);
  impl_->clearAfter(1, deadline);
  return isReleased ? ReleaseOutcome::released : ReleaseOutcome::notOwner;
}

std::vector<ReleaseOutcome> VersionDriver::releaseAll(std::span<const Claim> claims, Instant deadline) {
  impl_->forkGuard.check();
  std::vector<ReleaseOutcome> outcomes = impl_->table.releaseAll(claims, deadline);
  impl_->clearAfter(claims.size(), deadline);
  return outcomes;
}

void VersionDriver::Impl::clearAfter(std::size_t releases, Instant deadline) noexcept {
  wakeUps.tidyUp();
  const auto before = released_.fetch_add(static_cast<std::uint32_t>(releases));
  if (before / releasesBetweenClearings == (before + releases) / releasesBetweenClearings) return;
  try {
    table.clearUnused(std::min(deadline, clock().now() + longestClearing));
  } catch (const std::exception&) {
    // The next one is soon enough.
  }
}

std::optional<Holder> VersionDriver::holder(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  std::vector<Holder> holders = impl_->table.holders(key, deadline);
  return holders.empty() ? std::nullopt : std::optional(std::move(holders.front()));
}

Promises VersionDriver::promises() const {
  impl_->forkGuard.check();
  return impl_->sessions.promises();
}

std::string VersionDriver::name() const { return impl_->sessions.options().display; }

void* VersionDriver::findCapability(const std::type_info& type) noexcept {
  if (type == typeid(RateDriver)) return static_cast<RateDriver*>(&impl_->rates);
  if (type == typeid(SharedRecords)) return static_cast<SharedRecords*>(&impl_->records);
  return capabilityOf<Waitable, Batchable, BatchReleasing, Browsable, WaiterBrowsable, Breakable, Permits,
                      LossReporting, DoubtReporting>(*this, type);
}

void VersionDriver::list(std::string_view prefix,
                         const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                         Instant deadline) {
  impl_->forkGuard.check();
  std::string last;
  while (true) {
    const auto page = impl_->table.page(prefix, last, deadline);
    if (page.empty()) return;
    for (const LockTable::Held& each : page) {
      if (!visit(each.key, each.holder)) return;
    }
    last = page.back().key;
  }
}

std::vector<std::vector<Waiter>> VersionDriver::waiters(std::span<const std::string> keys, Instant deadline) {
  impl_->forkGuard.check();
  return impl_->table.waiters(keys, deadline);
}

bool VersionDriver::breakLock(std::string_view key, Instant deadline, const Holder* shown) {
  impl_->forkGuard.check();
  return impl_->table.breakLock(key, shown, deadline);
}

std::vector<Holder> VersionDriver::shareHolders(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  std::vector<Holder> holders = impl_->table.holders(key, deadline);
  std::erase_if(holders, [](const Holder& each) { return !each.share; });
  return holders;
}

bool VersionDriver::resize(std::string_view key, std::uint32_t limit, Instant deadline) {
  impl_->forkGuard.check();
  return impl_->table.resize(key, limit, deadline);
}

void VersionDriver::addLossListener(std::weak_ptr<LossListener> listener) {
  impl_->losses.add(std::move(listener));
  impl_->sessions.listen(impl_->texts.lostChannel, [impl = impl_.get()](std::string_view text) {
    const auto bytes = fromHex(text);
    if (!bytes || bytes->size() != Token::size) return;
    const Token token = Token::fromBytes(std::as_bytes(std::span(*bytes)).first<Token::size>());
    impl->losses.claimsLost({&token, 1});
  });
}

void VersionDriver::addDoubtListener(std::weak_ptr<LossListener> listener) {
  impl_->doubts.add(std::move(listener));
}

std::optional<std::chrono::milliseconds> VersionDriver::checkEvery() const {
  return impl_->sessions.options().hosts.size() > 1 ? checkHostsEvery : hearEvery;
}

// A failover may leave the sessions open that there are.
void VersionDriver::Impl::lookForPrimary(Instant deadline) {
  if (sessions.options().hosts.size() == 1) {
    if (clock().now() < nextLook_.load()) return;
    nextLook_ = clock().now() + connectEvery;
  }
  sessions.lookForPrimary(deadline);
}

void VersionDriver::checkServer(Instant deadline) noexcept {
  try {
    impl_->forkGuard.check();
    impl_->sessions.hear();
    impl_->lookForPrimary(deadline);
  } catch (const std::exception&) {
    // The next attempt is soon enough.
  }
}

}  // namespace lockkeeper::postgres
