#include "lockkeeper/lock_manager.h"

#include <algorithm>
#include <array>
#include <functional>
#include <list>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/either_stop.h"
#include "lock/engine.h"
#include "lockkeeper/driver/fork_guard.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"

namespace lockkeeper {

namespace {

constexpr std::size_t mostKeys = 1000;

// Each once, in the order in which everybody takes them.
std::vector<std::string_view> inOrder(std::vector<std::string_view> keys) {
  for (const std::string_view key : keys) checkKey(key);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  if (keys.empty() || keys.size() > mostKeys) {
    throw std::invalid_argument("lockAll takes 1 to " + std::to_string(mostKeys) + " keys, not " +
                                std::to_string(keys.size()));
  }
  return keys;
}

}  // namespace

/// The locks, and the token that fires when the first of them is lost.
class LockSet::State {
 public:
  explicit State(std::shared_ptr<detail::Engine> engine) : engine_(std::move(engine)) {}
  State(const State&) = delete;
  ~State() {
    if (engine_ == nullptr) return;
    const Instant until = callEnd();
    letGo();
    detail::Engine::leave(std::move(engine_), until);
  }

  /// Whether all of `keys` are held. `key` is the one that was waited for last.
  bool takeAll(std::span<const std::string_view> keys, const detail::LockTerms& terms, std::string_view& key);

  /// In a forked child, as Lock::lost().
  std::stop_token lost() const noexcept {
    return forkGuard_.inherited() && !locks.empty() ? locks.front().lost() : lost_.get_token();
  }
  bool inherited() const noexcept { return forkGuard_.inherited(); }
  ReleaseResult release() noexcept;

  std::vector<Lock> locks;  // in the order of their keys

 private:
  using OnLoss = std::stop_callback<std::function<void()>>;

  void add(Lock lock);
  bool allValid() const noexcept {
    return std::ranges::all_of(locks, [](const Lock& lock) { return lock.valid(); });
  }
  bool takeNext(std::string_view key, detail::LockTerms terms, Instant until);
  void beginAgain();
  Instant callEnd() const noexcept { return engine_->callEnd(engine_->now()); }
  void letGo() noexcept;

  std::shared_ptr<detail::Engine> engine_;  // null when released
  const ForkGuard forkGuard_;
  std::stop_source lost_;
  std::list<OnLoss> losses_;  // of each of the locks
};

bool LockSet::State::takeAll(std::span<const std::string_view> keys, const detail::LockTerms& terms,
                             std::string_view& key) {
  // What is taken first is kept, while the others are waited for, however it will be kept then.
  detail::LockTerms taking = terms;
  taking.renew = Renew::automatic;
  taking.maxHold.reset();
  const Instant until =
      terms.waitFor == forever ? Instant::max() : saturatingAdd(engine_->now(), terms.waitFor);
  locks.reserve(keys.size());
  while (locks.size() < keys.size() || !allValid()) {
    if (!allValid()) beginAgain();
    auto claimed = engine_->acquireFree(keys.subspan(locks.size()), taking, until);
    for (Lock& lock : claimed.locks) add(std::move(lock));
    if (locks.size() == keys.size()) continue;
    key = keys[locks.size()];
    const bool busyAtTheEnd = claimed.nextIsBusy && engine_->now() >= until;
    if (!busyAtTheEnd && takeNext(key, taking, until)) continue;
    const bool isOver = engine_->stopped() || terms.stop.stop_requested() || engine_->now() >= until;
    if (isOver || allValid()) return false;
  }
  for (const Lock& lock : locks) engine_->startHolding(lock, terms);
  return true;
}

// Waits for it, holding those before. A loss among them ends the wait.
bool LockSet::State::takeNext(std::string_view key, detail::LockTerms terms, Instant until) {
  const detail::EitherStop stop(terms.stop, lost_.get_token());
  terms.stop = stop.token();
  if (until != Instant::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - engine_->now());
    terms.waitFor = std::max(left, left.zero());
  }
  auto lock = engine_->acquire(key, terms);
  if (lock) add(std::move(*lock));
  return lock.has_value();
}

// Somebody else may have had a key meanwhile.
void LockSet::State::beginAgain() {
  letGo();
  lost_ = std::stop_source();
}

void LockSet::State::add(Lock lock) {
  locks.push_back(std::move(lock));
  // By a copy: what hears of the loss may end the set, and with it this callback.
  losses_.emplace_back(locks.back().lost(), [lost = lost_] { std::stop_source(lost).request_stop(); });
}

ReleaseResult LockSet::State::release() noexcept {
  constexpr std::array worstFirst{ReleaseResult::notOwner, ReleaseResult::unknown, ReleaseResult::unavailable,
                                  ReleaseResult::released, ReleaseResult::notHeld};
  auto worst = worstFirst.end() - 1;
  if (engine_ == nullptr) return *worst;
  const Instant until = callEnd();
  for (auto lock = locks.rbegin(); lock != locks.rend(); ++lock) {
    worst = std::min(worst, std::ranges::find(worstFirst, lock->end(true, until)));
  }
  detail::Engine::leave(std::move(engine_), until);
  return *worst;
}

void LockSet::State::letGo() noexcept {
  const Instant until = callEnd();
  while (!locks.empty()) {
    losses_.pop_back();
    locks.back().end(false, until);
    locks.pop_back();
  }
}

LockSet::LockSet() noexcept = default;
LockSet::LockSet(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
LockSet::LockSet(LockSet&&) noexcept = default;

LockSet& LockSet::operator=(LockSet&& other) noexcept {
  if (this != &other) {
    letGo();
    state_ = std::move(other.state_);
  }
  return *this;
}

LockSet::~LockSet() { letGo(); }

// In a forked child, a callback of a loss may be running for ever on a thread that is not there.
void LockSet::letGo() noexcept {
  if (state_ && state_->inherited()) static_cast<void>(state_.release());
  state_.reset();
}

bool LockSet::valid() const noexcept {
  return state_ && std::ranges::all_of(state_->locks, [](const Lock& lock) { return lock.valid(); });
}

std::chrono::nanoseconds LockSet::remaining() const noexcept {
  if (!state_) return std::chrono::nanoseconds::zero();
  const auto shortest = std::ranges::min_element(state_->locks, {}, &Lock::remaining);
  return shortest->remaining();
}

LockState LockSet::state() const noexcept {
  if (!state_) return LockState::released;
  const auto has = [this](LockState state) { return std::ranges::find(state_->locks, state, &Lock::state); };
  for (const LockState worst : {LockState::released, LockState::lost, LockState::suspect}) {
    if (has(worst) != state_->locks.end()) return worst;
  }
  return LockState::held;
}

std::stop_token LockSet::lost() const noexcept { return state_ ? state_->lost() : std::stop_token(); }

std::optional<Fence> LockSet::fence(std::string_view key) const {
  if (state_) {
    const auto lock = std::ranges::find(state_->locks, key, &Lock::key);
    if (lock != state_->locks.end()) return lock->fence();
  }
  throw std::invalid_argument("the key " + quoted(key) + " is not one of those that were locked together");
}

std::span<const Lock> LockSet::locks() const noexcept {
  return state_ ? std::span<const Lock>(state_->locks) : std::span<const Lock>();
}

void LockSet::renew() {
  if (!state_) throw LockLost("the locks were released: they cannot be renewed");
  for (Lock& lock : state_->locks) lock.renew();
}

ReleaseResult LockSet::release() noexcept {
  if (!state_ || state_->inherited()) return ReleaseResult::notHeld;
  return state_->release();
}

std::optional<LockSet> LockManager::tryLockAll(std::vector<std::string_view> keys,
                                               const LockOptions& options) {
  const auto engine = this->engine();
  const auto terms = engine->termsOf(options, std::chrono::milliseconds{0});
  auto state = std::make_unique<LockSet::State>(engine);
  std::string_view busy;
  if (!state->takeAll(inOrder(std::move(keys)), terms, busy)) return std::nullopt;
  return LockSet(std::move(state));
}

LockSet LockManager::lockAll(std::vector<std::string_view> keys, const LockOptions& options) {
  const auto engine = this->engine();
  const auto terms = engine->termsOf(options, forever);
  const auto ordered = inOrder(std::move(keys));
  auto state = std::make_unique<LockSet::State>(engine);
  std::string_view busy;
  if (state->takeAll(ordered, terms, busy)) return LockSet(std::move(state));
  const std::string which = "the locks of " + std::to_string(ordered.size()) + " keys ";
  if (terms.stop.stop_requested() || engine->stopped())
    throw Cancelled("the wait for " + which + "was cancelled at " + quoted(busy));
  throw LockTimeout(which + "were not all free within " + formatDuration(terms.waitFor) + ": " +
                    quoted(busy) + " was busy");
}

}  // namespace lockkeeper
