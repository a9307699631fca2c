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
                       Environment environment, FindOutsiders findOutsiders)
    : options_(std::move(options)),
      environment_(std::move(environment)),
      findOutsiders_(std::move(findOutsiders)),
      stateStore_(std::move(records), options_.name),
      id_(randomId(*environment_.random)) {}

void Membership::leave() {
  std::unique_lock held(mutex_);
  if (!heart_.joinable()) return;
  stopping_ = true;
  wakeUp_.notify_all();
  const Instant until = environment_.clock->now() + longestLeaving;
  while (!ended_ && environment_.clock->now() < until) environment_.clock->wait(held, wakeUp_, until);
  if (!ended_) {
    leftBehind_ = true;
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
  return target().phaseOf(key) == phase ? phase : Phase::both;
}

bool Membership::leasedAt(Instant when) {
  const std::lock_guard held(mutex_);
  return when < leaseUntil_;
}

bool Membership::mayUse(Phase phase) {
  const std::lock_guard held(mutex_);
  return current_.mentions(phase) || target().mentions(phase);
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
  self.drained = locks_.drained(target(), now);
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
  if (!mayLiveAlone) removeRecord(self);  // else it must stay until none can live any more
  held.lock();
  ended_ = true;
  wakeUp_.notify_all();
}

void Membership::removeRecord(const Member& self) {
  try {
    stateStore_.leave(self, environment_.clock->now() + options_.lease / 3);
  } catch (...) {
    // The record disappears by itself.
  }
}

void Membership::beat(Instant deadline) {
  std::unique_lock held(mutex_);
  const std::vector<OldLock> seen = std::exchange(seen_, {});
  held.unlock();
  try {
    const std::optional<MigrationState> state = exchange(deadline);
    if (!state) return;
    notedFailure_.clear();
    report(*state, seen, deadline);
    step(*state);
  } catch (const std::exception& error) {  // a driver's own, too: nobody else would catch it on this thread
    // Once an outage: a lease lasts for several heartbeats.
    if (leasedAt(environment_.clock->now())) return;
    noteOnce(notedFailure_,
             std::string("takes all locks in both stores, because the migration's state is out of reach: ") +
                 error.what());
  } catch (...) {
    // A driver that breaks its contract: the next heartbeat tries again.
  }
}

// Writes our record and reads the state. Empty when that has no rules to go by.
std::optional<MigrationState> Membership::exchange(Instant deadline) {
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
  MigrationState state = stateStore_.heartbeat(self, deadline);
  if (!state.target || state.version < self.version) {
    startAnew(state, deadline);
    return std::nullopt;
  }
  absorb(state, sentAt);
  const Rules& wanted = *state.target;
  tellConfiguration(wanted);
  tellRules(state.current == wanted ? wanted : Rules(Phase::both));
  return state;
}

void Membership::absorb(MigrationState& state, Instant sentAt) {
  const std::lock_guard held(mutex_);
  const bool gap = sentAt >= leaseUntil_;
  if (gap) {
    ++lease_;
    observation_.restart();
  }
  observation_.measure(state, environment_.clock->now());
  leaseUntil_ = sentAt + withoutDrift(options_.lease);
  const bool changed = version_ != state.version;
  version_ = state.version;
  current_ = state.current;
  written_ = state.target;
  // The others wait to hear that we go by it.
  if (changed) beatNow_ = true;
  wakeUp_.notify_all();
}

// The store has no state, or has lost it: then anybody may be in any phase, and all start in both, for as
// long as it takes until the locks of those that we do not know of have ended. What this process is
// configured for becomes the target only if it has never read one.
void Membership::startAnew(const MigrationState& state, Instant deadline) {
  std::unique_lock held(mutex_);
  current_ = Rules(Phase::both);
  const std::uint64_t version = std::max(version_, state.version) + 1;
  const Rules wanted = target();
  const bool lost = version_ > 0;
  beatNow_ = true;
  wakeUp_.notify_all();
  held.unlock();
  tellRules(Rules(Phase::both));
  stateStore_.change(state, version, Rules(Phase::both), wanted, deadline);
  if (lost)
    note(
        "the migration's state was lost: all locks are taken in both stores until the rules are in force "
        "again");
}

// Writes down an outsider among the holders of what was seen before `state` was read: a member joins before
// it takes a lock, and whoever has left is known for a while. True when its key is on its way to modern.
bool Membership::report(const MigrationState& state, const std::vector<OldLock>& seen, Instant deadline) {
  const OldLock* outsider = nullptr;
  bool inTheWay = false;
  for (const OldLock& each : seen) {
    if (!each.owner.empty() && state.knows(each.owner)) continue;
    const bool leaves = state.target && leavesOldStore(each.key, state, *state.target);
    if (outsider == nullptr || (leaves && !inTheWay)) outsider = &each;
    inTheWay = inTheWay || leaves;
  }
  if (outsider != nullptr) stateStore_.sighted(outsider->key, inTheWay, deadline);
  return inTheWay;
}

void Membership::step(const MigrationState& state) {
  const Rules& wanted = *state.target;
  if (state.current == wanted) {
    notedBlockers_.clear();
    return;
  }
  const std::vector<Blocker> found = blockersOf(state, wanted, options_.observation);
  if (!found.empty()) {
    std::string all;
    for (const Blocker& blocker : found) all.append(all.empty() ? "" : "; ").append(blocker.what);
    noteOnce(notedBlockers_, "stays in both on the way to " + quoted(wanted.text()) + ": " + all);
  }
  // Even while something else blocks, so that an outsider is told of in time.
  const Instant now = environment_.clock->now();
  const bool seek = found.empty() || now >= outsidersSoughtAt_ + options_.observation / 4;
  if (seek && outsiderFound(state, wanted)) return;
  if (!found.empty()) return;
  // The look through the old store may have taken long, and others have joined meanwhile.
  MigrationState latest;
  const Instant soon = environment_.clock->now() + options_.lease / 3;
  if (!safeNow(state.version, soon, latest) || !stateStore_.commit(latest, soon)) return;
  note("the rules are now " + quoted(wanted.text()));
  const std::lock_guard held(mutex_);
  beatNow_ = true;
  wakeUp_.notify_all();
}

// Reads the state once more into `state`: whether it still has the version, and nothing blocks its target.
bool Membership::safeNow(std::uint64_t version, Instant deadline, MigrationState& state) {
  state = stateStore_.read(deadline);
  if (state.version != version) return false;
  observation_.measure(state, environment_.clock->now());
  return blockersOf(state, *state.target, options_.observation).empty();
}

// Once, at the start: nobody should wait for a configuration that has no effect.
void Membership::tellConfiguration(const Rules& followed) {
  if (std::exchange(toldConfiguration_, true) || options_.rules == followed) return;
  note("is configured for " + quoted(options_.rules.text()) + ", but follows the rules that are written, " +
       quoted(followed.text()) + ": lockkeeper migrate advance changes them");
}

// Errors of the old store count as an outsider: nobody knows that there is none.
bool Membership::outsiderFound(const MigrationState& state, const Rules& wanted) {
  outsidersSoughtAt_ = environment_.clock->now();
  const Instant deadline = outsidersSoughtAt_ + options_.lease / 3;
  try {
    const std::vector<OldLock> seen = findOutsiders_(state, wanted, deadline);
    if (seen.empty()) return false;
    // Some holders may have joined since the state was read. If all of them have, more may come behind them.
    return report(stateStore_.read(deadline), seen, deadline) || seen.size() == mostOutsiders;
  } catch (const Error& error) {
    noteOnce(notedBlockers_,
             std::string("stays in both: the old store could not be looked through: ") + error.what());
    return true;
  }
}

void Membership::noteOnce(std::string& last, const std::string& message) const {
  if (last == message) return;
  last = message;
  note(message);
}

void Membership::note(const std::string& message) const {
  const std::string store = "migration " + options_.name;
  tell({.kind = EventKind::noted, .store = store, .text = message});
}

void Membership::tellRules(const Rules& rules) {
  std::string text = rules.text();
  if (text == toldRules_) return;
  toldRules_ = std::move(text);
  const Instant now = environment_.clock->now();
  tell({.kind = EventKind::phaseChanged,
        .key = options_.name,
        .began = now,
        .ended = now,
        .text = toldRules_});
}

void Membership::tell(const Event& event) const {
  {
    // What a listener uses may be gone by then.
    const std::lock_guard held(mutex_);
    if (leftBehind_) return;
  }
  environment_.tell(event);
}

}  // namespace lockkeeper::migration
