#include "membership.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "stores/marked_store.h"

namespace lockkeeper::migration {

namespace {

using std::chrono::milliseconds;

// Less than the I/O timeout that the destructors of locks may take besides the operation timeout.
constexpr std::chrono::seconds longestLeaving{1};

constexpr std::size_t mostLabels = 16;

std::string randomId(Random& random) { return Token::generate(random).hex().substr(0, 16); }

std::string tooLong(milliseconds ttl, milliseconds maxTtl) {
  return "ttl is " + formatDuration(ttl) + ": during the migration at most " + formatDuration(maxTtl) +
         " (maxTtl) is allowed";
}

// As core does for locks: the clocks of process and store may differ in speed.
std::chrono::nanoseconds withoutDrift(std::chrono::nanoseconds lease) {
  return lease - lease / 100 - milliseconds{2};
}

}  // namespace

Membership::Membership(std::shared_ptr<SharedRecords> records, MigrationOptions options,
                       Environment environment, std::shared_ptr<LockDriver> oldStore)
    : options_(std::move(options)),
      environment_(std::move(environment)),
      id_(randomId(*environment_.random)),
      stateStore_(std::move(records), options_.name),
      announcements_(options_, environment_),
      watch_(stateStore_, std::move(oldStore), options_, environment_.clock, id_,
             [this](const std::string& message) { announcements_.note(message); }),
      target_(options_.rules) {}

void Membership::leave() {
  std::unique_lock held(mutex_);
  if (!heart_.joinable()) return;
  stopping_ = true;
  wakeUp_.notify_all();
  const Instant until = environment_.clock->now() + longestLeaving;
  while (!ended_ && environment_.clock->now() < until) environment_.clock->wait(held, wakeUp_, until);
  if (!ended_) {
    announcements_.stop();
    return heart_.detach();
  }
  held.unlock();
  heart_.join();
}

Phase Membership::choose(const AcquireRequest& request) {
  if (request.ttl > options_.maxTtl) throw std::invalid_argument(tooLong(request.ttl, options_.maxTtl));
  std::unique_lock held(mutex_);
  const bool isNew = labelIsNew(request.claim.owner);
  if (isNew || !heart_.joinable()) {
    if (isNew) labels_.emplace_back(request.claim.owner);
    if (!heart_.joinable()) heart_ = std::thread([self = shared_from_this()] { self->run(); });
    // Before the lock is there to be seen, so that nobody takes us for an outsider.
    const std::uint64_t next = begun_ + 1;
    beatNow_ = true;
    wakeUp_.notify_all();
    const Instant now = environment_.clock->now();
    const Instant until = now + (request.deadline - now) / 2;  // the rest is for the stores
    while (answered_ < next && environment_.clock->now() < until) {
      environment_.clock->wait(held, wakeUp_, until);
    }
  }
  const Instant now = environment_.clock->now();
  const Phase phase = now < leaseUntil_ ? byRules(request.claim.key) : Phase::both;
  return locks_.note(request.claim, phase, lease_, now).phase;
}

bool Membership::labelIsNew(std::string_view label) const {
  return !label.empty() && labels_.size() < mostLabels &&
         std::find(labels_.begin(), labels_.end(), label) == labels_.end();
}

bool Membership::confirm(const AcquireRequest& request, const Granted& granted) {
  const std::lock_guard held(mutex_);
  const Instant now = environment_.clock->now();
  HeldLocks::HeldLock* heldLock = locks_.find(request.claim, now);
  if (heldLock == nullptr) return false;
  heldLock->end = saturatingAdd(now, std::max(request.ttl, granted.leasedFor));
  return heldLock->phase == Phase::both || (heldLock->lease == lease_ && granted.leasedFrom < leaseUntil_);
}

void Membership::forget(const Claim& claim) {
  const std::lock_guard held(mutex_);
  locks_.erase(claim);
}

void Membership::doubt(const Claim& claim, milliseconds ttl) {
  const std::lock_guard held(mutex_);
  const Instant now = environment_.clock->now();
  if (auto* heldLock = locks_.find(claim, now)) heldLock->end = saturatingAdd(now, ttl);
}

std::optional<Phase> Membership::phaseOf(const Claim& claim) {
  const std::lock_guard held(mutex_);
  const auto* heldLock = locks_.find(claim, environment_.clock->now());
  return heldLock == nullptr ? std::nullopt : std::optional(heldLock->phase);
}

std::optional<Phase> Membership::beginRenewal(Renewal& renewal) {
  const auto refuse = [&](std::string cause) {
    renewal.outcome = RenewOutcome::unavailable;
    renewal.cause = std::move(cause);
    return std::nullopt;
  };
  const std::lock_guard held(mutex_);
  const Instant now = environment_.clock->now();
  auto* heldLock = locks_.find(renewal.claim, now);
  const Phase phase = heldLock == nullptr ? byRules(renewal.claim.key) : heldLock->phase;
  if (phase != Phase::both) {
    if (renewal.ttl > options_.maxTtl) return refuse(tooLong(renewal.ttl, options_.maxTtl));
    if (heldLock && now >= leaseUntil_) return refuse("the migration's state was out of reach for too long");
  }
  if (heldLock != nullptr) heldLock->end = Instant::max();
  return phase;
}

Phase Membership::phaseNow(std::string_view key) {
  const std::lock_guard held(mutex_);
  return byRules(key);
}

Phase Membership::byRules(std::string_view key) const {
  const Phase phase = current_.phaseOf(key);
  return target_.phaseOf(key) == phase ? phase : Phase::both;
}

bool Membership::leasedAt(Instant when) {
  const std::lock_guard held(mutex_);
  return when < leaseUntil_;
}

bool Membership::mayUse(Phase phase) {
  const std::lock_guard held(mutex_);
  return current_.mentions(phase) || target_.mentions(phase);
}

bool Membership::wantsToLook() {
  const std::lock_guard held(mutex_);
  const Instant now = environment_.clock->now();
  if (now < lookAgainAt_) return false;
  lookAgainAt_ = now + options_.heartbeat / 8;
  return true;
}

void Membership::saw(std::string_view key, std::string_view owner) {
  const std::lock_guard held(mutex_);
  if (seen_.size() < mostOutsiders) seen_.push_back({std::string(key), std::string(owner)});
}

Member Membership::record(Instant now) const {
  Member self;
  self.id = id_;
  for (const std::string& label : labels_) self.labels.push_back(markedLabel(label));
  self.version = version_;
  self.drained = locks_.drained(target_, now);
  self.lease = options_.lease;
  self.locksEndAfter = options_.lease + options_.maxTtl;
  return self;
}

void Membership::run() {
  std::unique_lock held(mutex_);
  Instant next = environment_.clock->now();
  while (!stopping_) {
    const Instant now = environment_.clock->now();
    if (now < next && !beatNow_) {
      environment_.clock->wait(held, wakeUp_, next);
      continue;
    }
    beatNow_ = false;
    next = now + options_.heartbeat;
    held.unlock();
    beat(now + options_.lease / 3);
    held.lock();
  }
  const Instant now = environment_.clock->now();
  const Member self = record(now);
  const bool mayLiveAlone = !locks_.noneAlone(now);
  held.unlock();
  try {
    const Instant deadline = now + options_.lease / 3;
    if (!mayLiveAlone) stateStore_.leave(self, deadline);  // else it must stay until none can live any more
    watch_.leave(deadline);
  } catch (...) {
    // The records disappear by themselves.
  }
  held.lock();
  ended_ = true;
  wakeUp_.notify_all();
}

void Membership::beat(Instant deadline) {
  std::unique_lock held(mutex_);
  const std::vector<OldLock> seen = std::exchange(seen_, {});
  held.unlock();
  try {
    if (!exchange(deadline)) return;
    notedFailure_.clear();
    if (!watch_.beat(heard_, seen, deadline)) return;
    held.lock();
    beatNow_ = true;
    wakeUp_.notify_all();
  } catch (const std::exception& error) {  // a driver's own, too: nobody else would catch it on this thread
    // Once an outage: a lease lasts for several heartbeats.
    if (leasedAt(environment_.clock->now())) return;
    const std::string failure =
        std::string("takes all locks in both stores, because the migration's state is out of reach: ") +
        error.what();
    if (std::exchange(notedFailure_, failure) != failure) announcements_.note(failure);
  } catch (...) {
    // A driver that breaks its contract: the next heartbeat tries again.
  }
}

// Writes our record and reads the rules. False when there are none to go by.
bool Membership::exchange(Instant deadline) {
  std::unique_lock held(mutex_);
  const std::uint64_t beat = ++begun_;
  const Instant sentAt = environment_.clock->now();
  const Member self = record(sentAt);
  held.unlock();
  struct Answered {
    Membership& membership;
    std::uint64_t beat;
    ~Answered() {
      const std::lock_guard guard(membership.mutex_);
      membership.answered_ = beat;
      membership.wakeUp_.notify_all();
    }
  } answered{*this, beat};
  stateStore_.heartbeat(self, heard_, deadline);
  if (heard_.version == 0 || heard_.version < self.version) {
    startAnew(deadline);
    return false;
  }
  absorb(sentAt);
  const Rules& wanted = heard_.target;
  announcements_.follows(wanted);
  announcements_.inForce(heard_.current == wanted ? wanted : Rules(Phase::both));
  return true;
}

void Membership::absorb(Instant sentAt) {
  const std::lock_guard held(mutex_);
  if (sentAt >= leaseUntil_) ++lease_;
  leaseUntil_ = sentAt + withoutDrift(options_.lease);
  // The others wait to hear that we go by it.
  if (version_ != heard_.version) beatNow_ = true;
  version_ = heard_.version;
  current_ = heard_.current;
  target_ = heard_.target;
  wakeUp_.notify_all();
}

// The store has no state, or has lost it: then anybody may be in any phase, and all start in both, for as
// long as it takes until the locks of those that we do not know of have ended. What this process is
// configured for becomes the target only if it has never read one.
void Membership::startAnew(Instant deadline) {
  std::unique_lock held(mutex_);
  current_ = Rules(Phase::both);
  const std::uint64_t version = std::max(version_, heard_.version) + 1;
  const Rules wanted = target_;
  const bool lost = version_ > 0;
  beatNow_ = true;
  wakeUp_.notify_all();
  held.unlock();
  announcements_.inForce(Rules(Phase::both));
  stateStore_.change(heard_, version, Rules(Phase::both), wanted, deadline);
  if (!lost) return;
  announcements_.note(
      "the migration's state was lost: all locks are taken in both stores until the rules are in force "
      "again");
}

}  // namespace lockkeeper::migration
