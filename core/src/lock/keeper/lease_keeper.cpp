#include "lock/keeper/lease_keeper.h"
#include "lockkeeper/driver/losses.h"

#include <algorithm>
#include <list>
#include <new>
#include <system_error>
#include <utility>

#include "lockkeeper/error.h"

namespace lockkeeper::detail {

namespace {

// Enough to renew thousands of leases a second on a store that takes a second for each group of them.
constexpr std::size_t mostThreads = 4;

}  // namespace

/// Passes events on to the listener until close(). A thread that the store keeps busy outlives the manager,
/// and what the listener uses may be destroyed by then.
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

/// Passes the driver's reports of losses on to the keeper until close(). The driver may outlive the keeper.
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
      reporting_(capability<LossReporting>(*driver_)),
      doubting_(capability<DoubtReporting>(*driver_)),
      releases_(driver_, environment_, std::move(owner), operationTimeout, retryPause, mutex_,
                [this](Instant when) { threads_.wakeUpAt(when); }),
      doubt_(doubting_, leases_, releases_, environment_.clock, operationTimeout, mutex_,
             [this](Instant when) { threads_.wakeUpAt(when); }),
      losses_(leases_, environment_, store_, mutex_),
      renewer_(driver_, environment_, leases_, losses_, doubt_, releases_, operationTimeout, mutex_,
               [this](Instant when) { watchRenewal(when); }),
      inbox_(std::make_shared<LossInbox>(*this)),
      threads_(mutex_, *environment_.clock, mostThreads,
               {.due = [this] { return due(); },
                .doIt = [this](auto& held) { work(held); },
                .last = [this](auto& held) { releases_.finish(held); }}) {}

void LeaseKeeper::start() {
  if (started_) return;
  const std::lock_guard starting(startMutex_);
  if (started_) return;
  startThreads();
  // After what may fail: otherwise the driver would keep one listener for each try.
  if (reporting_ != nullptr) reporting_->addLossListener(inbox_);
  if (doubting_ != nullptr) doubting_->addDoubtListener(inbox_);
  started_ = true;
}

void LeaseKeeper::startThreads() {
  const std::lock_guard held(mutex_);
  doubt_.start();
  try {
    losses_.start(shared_from_this());
    threads_.start(shared_from_this());
  } catch (const std::system_error& error) {
    throw StoreUnavailable(store_ + ": no thread to keep leases with: " + error.what());
  }
}

// With no mutex held.
void LeaseKeeper::watch(Instant renewal, Instant end) {
  watchRenewal(renewal);
  losses_.watch(end);
}

// Most leases fall due after those that are waited for already: then the mutex is not needed.
void LeaseKeeper::watchRenewal(Instant renewal) {
  if (!threads_.sleepsBeyond(renewal)) return;
  const std::lock_guard held(mutex_);
  threads_.wakeUpAt(renewal);
}

Instant LeaseKeeper::due() { return std::min({leases_.firstRenewal(), releases_.due(), doubt_.due()}); }

void LeaseKeeper::work(std::unique_lock<std::mutex>& held) {
  const Instant now = environment_.clock->now();
  if (doubt_.due() <= now) return doubt_.check(held);
  if (leases_.firstRenewal() <= now) return renewer_.renewDue(held);
  releases_.work(held);
}

void LeaseKeeper::expect(Lease& lease, const Token& token) {
  stopExpecting(lease);
  lease.token = token;
  lease.state.store(LockState::held, std::memory_order_relaxed);
  if (reporting_ == nullptr) return;
  LeaseTable::Part& part = leases_.partOf(token);
  const std::lock_guard held(part.mutex);
  part.expected.reserve(part.expected.size() + 1);
  part.expected.add(lease);
}

void LeaseKeeper::stopExpecting(Lease& lease) noexcept {
  if (reporting_ == nullptr) return;
  LeaseTable::Part& part = leases_.partOf(lease.token);
  const std::lock_guard held(part.mutex);
  part.stopExpecting(lease);
}

void LeaseKeeper::add(Lease& lease) {
  LeaseTable::Part& part = leases_.partOf(lease.token);
  Instant renewal, end;
  {
    const std::lock_guard held(part.mutex);
    part.reserve(part.byToken.size() + 1);
    part.stopExpecting(lease);
    if (doubt_.isAbout(lease) || lease.suspect()) {
      lease.state.store(LockState::suspect, std::memory_order_release);
      lease.renewAt = lease.acquiredAt;
    }
    part.add(lease);
    renewal = lease.renewAt;
    end = lease.validUntil.load(std::memory_order_relaxed);
  }
  watch(renewal, end);
  doubt_.leaseAdded();
}

void LeaseKeeper::startHolding(Lease& lease, const LockTerms& terms) {
  LeaseTable::Part& part = leases_.partOf(lease.token);
  Instant renewal, end;
  {
    const std::lock_guard held(part.mutex);
    if (!lease.alive()) return;
    part.remove(lease);
    const Instant now = environment_.clock->now();
    lease.startHolding(terms, now);
    // A holder that renews by hand plans no renewal, but the doubt has to be ended all the same.
    if (doubt_.isAbout(lease) || lease.suspect()) lease.renewAt = now;
    part.add(lease);
    renewal = lease.renewAt;
    end = lease.validUntil.load(std::memory_order_relaxed);
  }
  watch(renewal, end);
}

bool LeaseKeeper::remove(Lease& lease) noexcept {
  LeaseTable::Part& part = leases_.partOf(lease.token);
  const std::lock_guard held(part.mutex);
  if (!lease.alive()) return false;
  lease.state.store(LockState::released, std::memory_order_release);
  part.remove(lease);
  return true;
}

bool LeaseKeeper::leaveToEnd(Lease& lease, Instant end) noexcept {
  if (!remove(lease)) return false;
  lease.leaveToEnd(end);
  return true;
}

std::optional<LocalQueue::HandingOn> LeaseKeeper::handingOnOf(Lease& lease) {
  const std::lock_guard held(leases_.partOf(lease.token).mutex);
  // A lease that is not alive may have lost its turn, and with it what handingOn() reads.
  return lease.alive() ? std::optional(lease.turn.handingOn()) : std::nullopt;
}

std::condition_variable* LeaseKeeper::handOver(Lease& lease, Instant now) {
  LeaseTable::Part& part = leases_.partOf(lease.token);
  std::condition_variable* waker = nullptr;
  Instant renewal, end;
  {
    const std::lock_guard held(part.mutex);
    if (lease.state.load(std::memory_order_relaxed) != LockState::held) return nullptr;
    if (now >= lease.validUntil.load(std::memory_order_relaxed)) return nullptr;
    // Another server may have taken over, which tells this process of nobody who waits there.
    if (doubt_.isSince(lease.turn.handingOn().askedAt)) return nullptr;
    // Both in one step, so that a loss that is reported meanwhile is the next one's. Its place in the table
    // is the one that this lease has left, so that no memory is needed.
    waker = lease.turn.handOver([&](Lease& next) {
      if (!next.succeed(lease, now)) return false;
      lease.state.store(LockState::released, std::memory_order_release);
      lease.ending = Ending::handedOn;
      part.remove(lease);
      part.add(next);
      renewal = next.renewAt;
      end = next.validUntil.load(std::memory_order_relaxed);
      return true;
    });
  }
  if (waker != nullptr) watch(renewal, end);
  return waker;
}

// Tells the losses on other threads, since the driver may hold mutexes. If there is no memory for that, the
// claim is asked for again, and the store's answer shows the loss.
void LeaseKeeper::claimsLost(std::span<const Token> tokens) noexcept {
  for (const Token& token : tokens) {
    std::list<std::shared_ptr<Lease>> lost;
    try {
      lost.emplace_back();
    } catch (const std::bad_alloc&) {
    }
    Instant renewal = Instant::max();
    {
      LeaseTable::Part& part = leases_.partOf(token);
      const std::lock_guard held(part.mutex);
      Lease* const lease = part.find(token);
      if (lease == nullptr) {
        // It belongs to another manager, or its grant is still on its way.
        if (Lease* const expected = part.findExpected(token))
          expected->state.store(LockState::suspect, std::memory_order_release);
        continue;
      }
      if (lost.empty()) {
        renewal = environment_.clock->now();
        FailoverDoubt::askAgain(part, *lease, renewal);
      } else {
        lost.front() = LossTeller::lose(part, *lease, LossReason::notOwner);
        if (lost.front() == nullptr) continue;
      }
    }
    const std::lock_guard held(mutex_);
    losses_.tellLater(lost);
    threads_.wakeUpAt(renewal);
  }
}

void LeaseKeeper::claimsInDoubt() noexcept {
  const std::lock_guard held(mutex_);
  doubt_.arise();
}

void LeaseKeeper::releaseAnswered(Lease& lease, ReleaseOutcome outcome) noexcept {
  const bool foundLost = lease.ending == Ending::valid && outcome != ReleaseOutcome::released &&
                         !lease.mayHaveEnded(environment_.clock->now());
  if (foundLost) lease.lossReason = lossReasonOf(outcome);
  if (outcome == ReleaseOutcome::released) doubt_.leaseFreed(lease);
  if (lease.ending != Ending::lost) {
    Event event = foundLost ? lease.endEvent(EventKind::lost, store_, environment_.clock->now())
                            : lease.endEvent(EventKind::released, store_, lease.heldUntil());
    event.attempts = 1;
    environment_.tell(event);
  }
  releases_.ended();
}

void LeaseKeeper::releaseFailed(Lease& lease, ErrorCode code, std::string_view text) noexcept {
  const Instant now = environment_.clock->now();
  environment_.tell({.kind = EventKind::attemptFailed,
                     .key = lease.key(),
                     .store = store_,
                     .began = lease.heldUntil(),
                     .ended = now,
                     .error = code,
                     .text = text,
                     .trace = lease.trace()});
  abandon(lease.claim(), lease.endAtLatest(now));
  if (lease.ending != Ending::lost) {
    Event event = lease.endEvent(EventKind::released, store_, now);
    event.attempts = 1;
    event.error = code;
    environment_.tell(event);
  }
  releases_.ended();
}

void LeaseKeeper::abandon(const Claim& claim, Instant until) noexcept {
  const std::lock_guard held(mutex_);
  releases_.abandon(claim, until);
}

void LeaseKeeper::shutDown(Instant until) {
  inbox_->close();
  std::unique_lock held(mutex_);
  losses_.stop();
  threads_.stop();
  losses_.join(held, until);
  threads_.join(held, until);
  if (events_) events_->close();
}

}  // namespace lockkeeper::detail
