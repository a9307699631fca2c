#include "lock/lease_keeper.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "lockkeeper/error.h"

namespace lockkeeper::detail {

namespace {

// So many renewals at most go to the driver at once: few calls for many locks, yet none so large that the
// other users of the store's connection wait for it.
constexpr std::size_t largestGroup = 1024;

// A store that takes a second for each group still renews thousands of leases a second.
constexpr std::size_t mostRenewers = 4;

// As many callbacks of lost() may be slow before one delays the next loss.
constexpr std::size_t mostExpiryThreads = 4;

// So many releases may be on their way from a server to the one that takes its place.
constexpr std::size_t mostFreed = 1024;

// By then the server that would take over has heard of a release.
constexpr std::chrono::minutes replicatedAfter{1};

// Until a lease in doubt is asked for again, after a failure.
constexpr std::chrono::nanoseconds doubtPause = std::chrono::milliseconds{500};

}  // namespace

/// Passes events on until nobody wants to hear them any more: a thread that a store keeps from ending in time
/// is left to itself, and what its listener uses may be gone by then.
class LeaseKeeper::EventGate final : public Listener {
 public:
  explicit EventGate(std::shared_ptr<Listener> listener) : listener_(std::move(listener)) {}

  void on(const Event& event) override {
    if (!closed_) listener_->on(event);
  }
  void close() { closed_ = true; }

 private:
  const std::shared_ptr<Listener> listener_;
  std::atomic<bool> closed_ = false;
};

/// Where the driver reports losses to: it may do so as long as it lives, the keeper ends before.
class LeaseKeeper::LossInbox final : public LossListener {
 public:
  explicit LossInbox(LeaseKeeper& keeper) : keeper_(&keeper) {}

  void claimsLost(std::span<const Token> tokens) noexcept override {
    const std::lock_guard held(mutex_);
    if (keeper_ != nullptr) keeper_->claimsLost(tokens);
  }

  void claimsInDoubt() noexcept override {
    const std::lock_guard held(mutex_);
    if (keeper_ != nullptr) keeper_->claimsInDoubt();
  }

  void close() {
    const std::lock_guard held(mutex_);
    keeper_ = nullptr;
  }

 private:
  std::mutex mutex_;
  LeaseKeeper* keeper_;
};

LeaseKeeper::LeaseKeeper(std::shared_ptr<LockDriver> driver, const Environment& environment,
                         std::string owner, std::chrono::nanoseconds operationTimeout,
                         std::chrono::nanoseconds retryPause)
    : driver_(std::move(driver)),
      store_(driver_->name()),
      events_(environment.listener ? std::make_shared<EventGate>(environment.listener) : nullptr),
      environment_{environment.clock, environment.random, events_},
      operationTimeout_(operationTimeout),
      doubts_(capability<DoubtReporting>(*driver_)),
      losses_(capability<LossReporting>(*driver_)),
      unawaited_(driver_, environment_, std::move(owner), operationTimeout, retryPause, mutex_,
                 [this](Instant when) { renewers_.wakeUpAt(when); }),
      inbox_(std::make_shared<LossInbox>(*this)),
      expiryThreads_(mutex_, *environment_.clock, mostExpiryThreads,
                     {.due = [this] { return nextLoss(); },
                      .doIt = [this](auto& held) { tellNextLoss(held); },
                      .last = [this](auto& held) { tellUntold(held); }}),
      renewers_(mutex_, *environment_.clock, mostRenewers,
                {.due =
                     [this] {
                       return std::min({firstRenewal(), unawaited_.due(), nextLook_});
                     },
                 .doIt = [this](auto& held) { renewDue(held); },
                 .last = [this](auto& held) { unawaited_.finish(held); }}) {
  firedToken();  // lest its first use be in a shortage of memory
}

void LeaseKeeper::start() {
  if (started_) return;
  const std::lock_guard starting(startMutex_);
  if (started_) return;
  startThreads();
  // After what may fail: the driver would keep one for each try.
  if (losses_ != nullptr) losses_->addLossListener(inbox_);
  if (doubts_ != nullptr) doubts_->addDoubtListener(inbox_);
  started_ = true;
}

void LeaseKeeper::startThreads() {
  const std::lock_guard held(mutex_);
  if (doubts_ != nullptr) lookEvery_ = doubts_->lookEvery();
  if (lookEvery_) freed_.resize(mostFreed);
  try {
    expiryThreads_.start(shared_from_this());
    renewers_.start(shared_from_this());
  } catch (const std::system_error& error) {
    throw StoreUnavailable(store_ + ": no thread to keep leases with: " + error.what());
  }
}

// All at once, so that neither this nor a renewal can fail in the midst.
void LeaseKeeper::Shard::reserve(std::size_t count) {
  ends.reserve(count);
  renewals.reserve(count);
  byToken.reserve(count);
}

void LeaseKeeper::Shard::add(Lease& lease) {
  ends.add(lease);
  if (lease.renewAt != Instant::max()) renewals.add(lease);
  byToken.add(lease);
}

void LeaseKeeper::Shard::remove(Lease& lease) {
  ends.remove(lease);
  renewals.remove(lease);
  byToken.remove(lease);
}

Lease* LeaseKeeper::Shard::find(const Token& token) const {
  return byToken.find(hashOf(token), [&](const Lease& each) { return each.token == token; });
}

Lease* LeaseKeeper::Shard::findExpected(const Token& token) const {
  return expected.find(hashOf(token), [&](const Lease& each) { return each.token == token; });
}

void LeaseKeeper::Shard::stopExpecting(Lease& lease) noexcept {
  if (findExpected(lease.token) == &lease) expected.remove(lease);
}

Instant LeaseKeeper::firstRenewal() {
  Instant first = Instant::max();
  for (Shard& shard : shards_) {
    const std::lock_guard held(shard.mutex);
    first = std::min(first, shard.renewals.firstTime());
  }
  return first;
}

Instant LeaseKeeper::firstEnd() {
  Instant first = Instant::max();
  for (Shard& shard : shards_) {
    const std::lock_guard held(shard.mutex);
    first = std::min(first, shard.ends.firstTime());
  }
  return first;
}

std::size_t LeaseKeeper::plannedRenewals() {
  std::size_t count = 0;
  for (Shard& shard : shards_) {
    const std::lock_guard held(shard.mutex);
    count += shard.renewals.size();
  }
  return count;
}

LeaseKeeper::Due LeaseKeeper::dueOf(const Lease& lease) {
  return {lease.renewAt, lease.validUntil.load(std::memory_order_relaxed)};
}

// With no mutex held.
void LeaseKeeper::wakeUpFor(const Due& due) {
  wakeUpAt(renewers_, due.renewal);
  wakeUpAt(expiryThreads_, due.end);
}

// Most leases fall due after those that are waited for already: then the keeper's mutex is not needed.
void LeaseKeeper::wakeUpAt(Relay& relay, Instant when) {
  if (!relay.sleepsBeyond(when)) return;
  const std::lock_guard held(mutex_);
  relay.wakeUpAt(when);
}

void LeaseKeeper::expect(Lease& lease, const Token& token) {
  stopExpecting(lease);
  lease.token = token;
  lease.state.store(LockState::held, std::memory_order_relaxed);
  if (losses_ == nullptr) return;
  Shard& shard = shardOf(token);
  const std::lock_guard held(shard.mutex);
  shard.expected.reserve(shard.expected.size() + 1);
  shard.expected.add(lease);
}

void LeaseKeeper::stopExpecting(Lease& lease) noexcept {
  if (losses_ == nullptr) return;
  Shard& shard = shardOf(lease.token);
  const std::lock_guard held(shard.mutex);
  shard.stopExpecting(lease);
}

void LeaseKeeper::add(Lease& lease) {
  Shard& shard = shardOf(lease.token);
  Due due;
  {
    const std::lock_guard held(shard.mutex);
    shard.reserve(shard.byToken.size() + 1);
    shard.stopExpecting(lease);
    if (inDoubt(lease) || lease.suspect()) {
      lease.state.store(LockState::suspect, std::memory_order_release);
      lease.renewAt = lease.acquiredAt;
    }
    shard.add(lease);
    due = dueOf(lease);
  }
  wakeUpFor(due);
  if (!lookEvery_) return;
  const std::lock_guard held(mutex_);
  planLook(environment_.clock->now());
}

void LeaseKeeper::planLook(Instant now) {
  if (looking_ || nextLook_ != Instant::max()) return;
  nextLook_ = saturatingAdd(now, *lookEvery_);
  renewers_.wakeUpAt(nextLook_);
}

void LeaseKeeper::announced(Lease& lease) {
  if (lease.told.exchange(Told::acquired) != Told::nothing) tellLater(lease.shared_from_this());
}

void LeaseKeeper::startHolding(Lease& lease, const LockTerms& terms) {
  Shard& shard = shardOf(lease.token);
  Due due;
  {
    const std::lock_guard held(shard.mutex);
    if (!lease.alive()) return;
    shard.remove(lease);
    const Instant now = environment_.clock->now();
    lease.startHolding(terms, now);
    // A holder that renews by hand plans no renewal, but the doubt has to be ended all the same.
    if (inDoubt(lease) || lease.suspect()) lease.renewAt = now;
    shard.add(lease);
    due = dueOf(lease);
  }
  wakeUpFor(due);
}

bool LeaseKeeper::remove(Lease& lease) noexcept {
  Shard& shard = shardOf(lease.token);
  const std::lock_guard held(shard.mutex);
  if (!lease.alive()) return false;
  lease.state.store(LockState::released, std::memory_order_release);
  shard.remove(lease);
  return true;
}

bool LeaseKeeper::leaveToEnd(Lease& lease, Instant end) noexcept {
  if (!remove(lease)) return false;
  lease.leaveToEnd(end);
  return true;
}

void LeaseKeeper::freed(Lease& lease) noexcept {
  if (!lookEvery_) return;
  const Instant end = lease.endOfLease();
  std::shared_ptr<Lease> forgotten;  // when the mutex is free
  const std::lock_guard held(mutex_);
  if (lease.releasedAt() <= lastDoubt_.load()) return unawaited_.abandon(lease.claim(), end);
  forgotten = std::exchange(freed_[nextFreed_], lease.shared_from_this());
  nextFreed_ = (nextFreed_ + 1) % freed_.size();
  const Instant now = environment_.clock->now();
  lookUntil_ = std::max(lookUntil_, std::min(end, saturatingAdd(now, replicatedAfter)));
  planLook(now);
}

std::optional<LocalQueue::Stay> LeaseKeeper::stayOf(Lease& lease) {
  const std::lock_guard held(shardOf(lease.token).mutex);
  // Its turn is its own no longer than that.
  return lease.alive() ? std::optional(lease.turn.stay()) : std::nullopt;
}

std::condition_variable* LeaseKeeper::handOver(Lease& lease, Instant now) {
  Shard& shard = shardOf(lease.token);
  std::condition_variable* waker = nullptr;
  Due due;
  {
    const std::lock_guard held(shard.mutex);
    if (lease.state.load(std::memory_order_relaxed) != LockState::held) return nullptr;
    if (now >= lease.validUntil.load(std::memory_order_relaxed)) return nullptr;
    // The server that has granted it may have been replaced, and with it who would tell us of others that
    // wait.
    if (lease.turn.stay().askedAt < lastDoubt_.load()) return nullptr;
    // The next one must be kept from the very moment on: a loss that is reported meanwhile is its loss. There
    // is room for it where this one was.
    waker = lease.turn.handOver([&](Lease& next) {
      if (!next.succeed(lease, now)) return false;
      lease.state.store(LockState::released, std::memory_order_release);
      lease.ending = Ending::handedOn;
      shard.remove(lease);
      shard.add(next);
      due = dueOf(next);
      return true;
    });
  }
  if (waker != nullptr) wakeUpFor(due);
  return waker;
}

bool LeaseKeeper::stillRuns(Lease& lease) {
  std::shared_ptr<Lease> lost;
  {
    // A renewal may be setting validUntil right now: decide under the mutex, once and for ever.
    Shard& shard = shardOf(lease.token);
    const std::lock_guard held(shard.mutex);
    if (!lease.alive()) return false;
    if (environment_.clock->now() < lease.validUntil.load(std::memory_order_relaxed)) return true;
    lost = lose(shard, lease, LossReason::leaseEnded);
  }
  tellLater(std::move(lost));
  return false;
}

void LeaseKeeper::loseTogether(Lease& lease, std::stop_source all) {
  {
    const std::lock_guard held(shardOf(lease.token).mutex);
    lease.lost = all;
    if (lease.told.load() != Told::loss) return;
  }
  all.request_stop();
}

std::stop_token LeaseKeeper::lostToken(Lease& lease) noexcept {
  const std::lock_guard held(shardOf(lease.token).mutex);
  if (!lease.lost.stop_possible()) {
    if (lease.told.load() == Told::loss) return firedToken();
    try {
      lease.lost = std::stop_source();
    } catch (const std::bad_alloc&) {
      return firedToken();  // better lost than never told
    }
  }
  return lease.lost.get_token();
}

// With no mutex held: the callbacks run.
void LeaseKeeper::fireLost(Lease& lease) {
  std::stop_source lost(std::nostopstate);
  {
    const std::lock_guard held(shardOf(lease.token).mutex);
    lease.told = Told::loss;
    lost = lease.lost;
  }
  lost.request_stop();
}

// Under the shard's mutex. Returns the lease when its loss is to be told.
std::shared_ptr<Lease> LeaseKeeper::lose(Shard& shard, Lease& lease, LossReason reason) {
  const bool heldTooLong = reason == LossReason::leaseEnded &&
                           lease.validUntil.load(std::memory_order_relaxed) == lease.holdUntil();
  lease.lossReason = heldTooLong ? LossReason::maxHold : reason;
  lease.state.store(LockState::lost, std::memory_order_release);
  shard.remove(lease);
  // The next caller of this process may go to the store from now on: it is the store that excludes it.
  lease.turn.leave();
  if (lease.told.exchange(Told::lostBefore) != Told::acquired) return nullptr;
  return lease.shared_from_this();
}

// With no mutex held.
void LeaseKeeper::tellLater(std::shared_ptr<Lease> lost) noexcept {
  if (lost == nullptr) return;
  try {
    const std::lock_guard held(mutex_);
    untold_.push_back(lost);
    expiryThreads_.wakeUpAt(nextLoss());
  } catch (const std::bad_alloc&) {
    tellLoss(*lost);  // better on this thread than never
  }
}

bool LeaseKeeper::renewed(Lease& lease, const Renewal& renewal, Instant began) {
  const RenewOutcome outcome = renewal.outcome;
  Shard& shard = shardOf(lease.token);
  std::unique_lock held(shard.mutex);
  if (!lease.alive()) {
    // Of one claim: it is the present holder's news.
    Lease* const next = lease.ending == Ending::handedOn ? shard.find(lease.token) : nullptr;
    const auto holder = next != nullptr ? next->shared_from_this() : nullptr;
    held.unlock();
    if (holder) renewed(*holder, renewal, began);
    return false;
  }
  const Instant now = environment_.clock->now();
  const Instant end = lease.validUntil.load(std::memory_order_relaxed);

  if (outcome == RenewOutcome::notOwner || outcome == RenewOutcome::ownerUnknown || now >= end) {
    const LossReason reason = now >= end                          ? LossReason::leaseEnded
                              : outcome == RenewOutcome::notOwner ? LossReason::notOwner
                                                                  : LossReason::ownershipUncertain;
    auto lost = lose(shard, lease, reason);
    held.unlock();
    tellLater(std::move(lost));
    return false;
  }
  const bool done = outcome == RenewOutcome::renewed;
  shard.remove(lease);
  if (done && renewal.atLeast) {
    lease.confirmedFrom = std::max(lease.confirmedFrom, renewal.leasedFrom);
  } else if (done) {
    lease.leased(renewal.leasedFrom, saturated(renewal.leasedFor));
  } else if (lease.renew == Renew::automatic || renewal.atLeast) {
    lease.renewAt = now + lease.length / 10;
  }
  const bool doubt = inDoubt(lease);
  // What was asked before the doubt arose has not ended it.
  if (doubt) lease.renewAt = done ? now : now + std::min(lease.length / 10, doubtPause);
  shard.add(lease);
  lease.state.store(done && !doubt ? LockState::held : LockState::suspect, std::memory_order_release);
  const Due due = dueOf(lease);
  held.unlock();
  wakeUpFor(due);
  if (done && renewal.atLeast) return true;
  Event event{.kind = EventKind::renewed,
              .key = lease.key(),
              .store = store_,
              .began = began,
              .ended = now,
              .attempts = 1,
              .share = lease.sharing(),
              .trace = lease.trace()};
  if (!done) {
    event.kind = EventKind::renewalFailed;
    event.error =
        outcome == RenewOutcome::unavailable ? ErrorCode::storeUnavailable : ErrorCode::outcomeUnknown;
    event.text = renewal.cause;
    event.remaining = end - now;
  }
  environment_.tell(event);
  return done;
}

std::size_t LeaseKeeper::suspects() {
  std::size_t count = 0;
  for (Shard& shard : shards_) {
    const std::lock_guard held(shard.mutex);
    for (std::size_t index = 0; index < shard.ends.size(); ++index) {
      if (shard.ends.at(index).state.load(std::memory_order_relaxed) == LockState::suspect) ++count;
    }
  }
  return count;
}

// Tells nothing on this thread: the driver may hold mutexes. Without memory, the claim is asked for again,
// and the store's answer tells of the loss.
void LeaseKeeper::claimsLost(std::span<const Token> tokens) noexcept {
  for (const Token& token : tokens) {
    std::list<std::shared_ptr<Lease>> lost;
    try {
      lost.emplace_back();
    } catch (const std::bad_alloc&) {
    }
    Instant renewal = Instant::max();
    {
      Shard& shard = shardOf(token);
      const std::lock_guard held(shard.mutex);
      Lease* const lease = shard.find(token);
      if (lease == nullptr) {
        // Of another manager, unless its grant is still on its way.
        if (Lease* const expected = shard.findExpected(token))
          expected->state.store(LockState::suspect, std::memory_order_release);
        continue;
      }
      if (lost.empty()) {
        renewal = environment_.clock->now();
        putInDoubt(shard, *lease, renewal);
      } else {
        lost.front() = lose(shard, *lease, LossReason::notOwner);
        if (lost.front() == nullptr) continue;
      }
    }
    const std::lock_guard held(mutex_);
    untold_.splice(untold_.end(), lost);
    expiryThreads_.wakeUpAt(nextLoss());
    renewers_.wakeUpAt(renewal);
  }
}

// To be renewed `now`. Under the shard's mutex, which keeps room for it.
void LeaseKeeper::putInDoubt(Shard& shard, Lease& lease, Instant now) noexcept {
  lease.state.store(LockState::suspect, std::memory_order_release);
  shard.renewals.remove(lease);
  lease.renewAt = now;
  shard.renewals.add(lease);
}

void LeaseKeeper::claimsInDoubt() noexcept {
  const std::lock_guard held(mutex_);
  const Instant now = environment_.clock->now();
  // Before any lease is looked at: one that is added later sees it.
  lastDoubt_ = now;
  for (Shard& shard : shards_) {
    const std::lock_guard heldToo(shard.mutex);
    for (std::size_t index = 0; index < shard.ends.size(); ++index)
      putInDoubt(shard, shard.ends.at(index), now);
  }
  renewers_.wakeUpAt(now);
  releaseAgain();
}

// What a server has confirmed, the one in its place may not have heard of: it would keep the key until the
// lease ends.
void LeaseKeeper::releaseAgain() noexcept {
  for (const auto& each : freed_) {
    if (each) unawaited_.abandon(each->claim(), each->endOfLease());
  }
  std::ranges::fill(freed_, nullptr);
}

void LeaseKeeper::look(std::unique_lock<std::mutex>& held) {
  nextLook_ = Instant::max();
  looking_ = true;
  held.unlock();
  doubts_->look(environment_.clock->now() + operationTimeout_);
  held.lock();
  looking_ = false;
  const Instant now = environment_.clock->now();
  if (keepsAny() || now < lookUntil_) planLook(now);
}

void LeaseKeeper::abandon(const Claim& claim, Instant until) noexcept {
  const std::lock_guard held(mutex_);
  unawaited_.abandon(claim, until);
}

void LeaseKeeper::releaseAnswered(Lease& lease, ReleaseOutcome outcome) noexcept {
  const bool foundLost = lease.ending == Ending::valid && outcome != ReleaseOutcome::released;
  if (foundLost) {
    lease.lossReason =
        outcome == ReleaseOutcome::notOwner ? LossReason::notOwner : LossReason::ownershipUncertain;
  }
  if (outcome == ReleaseOutcome::released) freed(lease);
  if (lease.ending != Ending::lost) {
    tellReleased(lease, foundLost ? environment_.clock->now() : lease.releasedAt(), foundLost);
  }
  unawaited_.ended();
}

void LeaseKeeper::releaseFailed(Lease& lease, ErrorCode code, std::string_view text) noexcept {
  const Instant now = environment_.clock->now();
  environment_.tell({.kind = EventKind::attemptFailed,
                     .key = lease.key(),
                     .store = store_,
                     .began = lease.releasedAt(),
                     .ended = now,
                     .error = code,
                     .text = text,
                     .trace = lease.trace()});
  abandon(lease.claim(), saturatingAdd(now, std::max<std::chrono::nanoseconds>(lease.ttl, lease.length)));
  if (lease.ending != Ending::lost) tellReleased(lease, now, false, code);
  unawaited_.ended();
}

void LeaseKeeper::tellReleased(const Lease& lease, Instant ended, bool foundLost,
                               std::optional<ErrorCode> error) {
  environment_.tell({.kind = foundLost ? EventKind::lost : EventKind::released,
                     .key = lease.key(),
                     .store = store_,
                     .began = lease.acquiredAt,
                     .ended = ended,
                     .attempts = 1,
                     .error = error,
                     .fence = lease.fence(),
                     .share = lease.sharing(),
                     .loss = lease.lossReason,
                     .trace = lease.trace()});
}

void LeaseKeeper::shutDown(Instant until) {
  inbox_->close();
  std::unique_lock held(mutex_);
  expiryThreads_.stop();
  renewers_.stop();
  expiryThreads_.join(held, until);
  renewers_.join(held, until);
  if (events_) events_->close();
}

Instant LeaseKeeper::nextLoss() { return untold_.empty() ? firstEnd() : Instant::min(); }

// The one whose end comes first, if that has come and its loss is to be told.
std::shared_ptr<Lease> LeaseKeeper::loseNext() {
  const Instant end = firstEnd();
  if (environment_.clock->now() < end) return nullptr;
  for (Shard& shard : shards_) {
    const std::lock_guard held(shard.mutex);
    if (shard.ends.firstTime() <= end) return lose(shard, shard.ends.first(), LossReason::leaseEnded);
  }
  return nullptr;
}

void LeaseKeeper::tellNextLoss(std::unique_lock<std::mutex>& held) {
  std::shared_ptr<Lease> lease;
  if (untold_.empty()) {
    lease = loseNext();
  } else {
    lease = std::move(untold_.front());
    untold_.pop_front();
  }
  if (lease == nullptr) return;
  held.unlock();
  tellLoss(*lease);
  lease.reset();  // It may be the last owner: not under the mutex.
  held.lock();
}

// With no mutex held.
void LeaseKeeper::tellLoss(Lease& lease) {
  fireLost(lease);
  environment_.tell({.kind = EventKind::lost,
                     .key = lease.key(),
                     .store = store_,
                     .began = lease.acquiredAt,
                     .ended = environment_.clock->now(),
                     .fence = lease.fence(),
                     .share = lease.sharing(),
                     .loss = lease.lossReason,
                     .trace = lease.trace()});
}

void LeaseKeeper::tellUntold(std::unique_lock<std::mutex>& held) {
  while (!untold_.empty()) tellNextLoss(held);
}

void LeaseKeeper::renewDue(std::unique_lock<std::mutex>& held) {
  const Instant now = environment_.clock->now();
  if (nextLook_ <= now) return look(held);
  if (now < firstRenewal()) return unawaited_.work(held);
  // All memory before a lease is taken out, so that without it they are still due.
  const std::size_t room = std::min(plannedRenewals(), largestGroup);
  std::vector<std::shared_ptr<Lease>> leases;
  std::vector<Renewal> renewals;
  std::vector<bool> told(room);
  leases.reserve(room);
  renewals.reserve(room);
  Instant lastEnd = now;
  for (std::size_t each = 0; each < shards_.size(); ++each) {
    Shard& shard = shards_[(firstShard_ + each) % shards_.size()];
    const std::lock_guard heldToo(shard.mutex);
    while (!shard.renewals.empty() && leases.size() < room) {
      Lease& lease = shard.renewals.first();
      // Those due soon come along: one round trip for all.
      if (lease.renewAt - lease.length / 30 > now) break;
      shard.renewals.remove(lease);
      lease.renewAt = Instant::max();
      lastEnd = std::max(lastEnd, lease.validUntil.load(std::memory_order_relaxed));
      leases.push_back(lease.shared_from_this());
      renewals.push_back(lease.renewal(now));
    }
  }
  ++firstShard_;
  held.unlock();

  const auto tell = [&](std::size_t index, const Renewal& renewal) {
    if (!told[index]) renewed(*leases[index], renewal, now);
    told[index] = true;
  };
  for (std::size_t i = 0; i < renewals.size(); ++i) {
    renewals[i].told = [&tell, i](const Renewal& renewal) { tell(i, renewal); };
  }
  try {
    // A lease that ends meanwhile is told lost in time whatever the others do. A renewal that comes after the
    // end of all of them is of no use to anyone.
    driver_->renew(renewals, std::min(now + operationTimeout_, lastEnd));
  } catch (...) {
    // A driver that breaks its contract: the outcomes that it did not write are unknown.
  }
  for (std::size_t i = 0; i < renewals.size(); ++i) tell(i, renewals[i]);
  for (std::size_t i = 0; i < renewals.size(); ++i) endInTime(*leases[i], renewals[i].outcome);
  leases.clear();  // What it owns may be the last of a lease: not under the mutex.
  held.lock();
}

// The renewal with that outcome may have come to the store after the last one, which was to end the lease.
void LeaseKeeper::endInTime(const Lease& lease, RenewOutcome outcome) {
  const auto end = lease.leftUntil();
  if (!end || (outcome != RenewOutcome::renewed && outcome != RenewOutcome::unknown)) return;
  const Instant now = environment_.clock->now();
  if (now >= *end) {
    abandon(lease.claim(), saturatingAdd(now, std::max<std::chrono::nanoseconds>(lease.ttl, lease.length)));
    return;
  }
  Renewal last = lease.lastRenewal(now);
  try {
    driver_->renew({&last, 1}, now + operationTimeout_);
  } catch (...) {
    // A driver that breaks its contract; the lease ends by itself.
  }
}

}  // namespace lockkeeper::detail
