#include "lockkeeper/lock_manager.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/either_stop.h"
#include "lock/engine.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"

namespace lockkeeper {

namespace {

constexpr std::size_t mostKeys = 1000;

// Sorted, so that everybody takes them in the same order, and each once.
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
  ~State() { release(false); }

  /// A key that could not be taken.
  struct Missing {
    std::string_view key;
    bool lost = false;  ///< It was lost while others were being taken; otherwise it was busy.
  };
  /// Takes all of `keys`. If it cannot, returns false, and `missing` is the key that it was waiting for.
  bool takeAll(std::span<const std::string_view> keys, const detail::LockTerms& terms, Missing& missing);

  /// In a forked child, as Lock::lost().
  std::stop_token lost() const noexcept {
    return forkGuard_.inherited() && !locks.empty() ? locks.front().lost() : lost_.get_token();
  }
  bool inherited() const noexcept { return forkGuard_.inherited(); }
  ReleaseResult release(bool awaited) noexcept;

  std::vector<Lock> locks;  // in the order of their keys

 private:
  void add(Lock lock);
  bool allValid() const noexcept { return firstInvalid() == locks.size(); }
  std::size_t firstInvalid() const noexcept {
    return static_cast<std::size_t>(std::ranges::find(locks, false, &Lock::valid) - locks.begin());
  }
  bool takeNext(std::string_view key, detail::LockTerms terms, Instant until);
  void beginAgain();
  Instant callEnd() const noexcept { return engine_->callEnd(engine_->now()); }

  std::shared_ptr<detail::Engine> engine_;  // null when released
  const ForkGuard forkGuard_;
  std::stop_source lost_;  // of all the locks
};

bool LockSet::State::takeAll(std::span<const std::string_view> keys, const detail::LockTerms& terms,
                             Missing& missing) {
  // While it waits for other keys, those that are taken are renewed, whatever `terms` say.
  detail::LockTerms taking = terms;
  taking.renew = Renew::automatic;
  taking.maxHold.reset();
  const Instant until =
      terms.waitFor == forever ? Instant::max() : saturatingAdd(engine_->now(), terms.waitFor);
  const auto isOver = [&] {
    return engine_->stopped() || terms.stop.stop_requested() || engine_->now() >= until;
  };
  locks.reserve(keys.size());
  while (locks.size() < keys.size() || !allValid()) {
    if (const std::size_t lost = firstInvalid(); lost < locks.size()) {
      missing = {keys[lost], true};
      if (isOver()) return false;
      beginAgain();
    }
    auto claimed = engine_->acquireFree(keys.subspan(locks.size()), taking, until);
    for (Lock& lock : claimed.locks) add(std::move(lock));
    if (locks.size() == keys.size()) continue;
    missing = {keys[locks.size()]};
    const bool busyAtTheEnd = claimed.nextIsBusy && engine_->now() >= until;
    if (!busyAtTheEnd && takeNext(missing.key, taking, until)) continue;
    if (isOver() || allValid()) return false;
  }
  for (const Lock& lock : locks) engine_->startHolding(lock, terms);
  return true;
}

// Waits for one key while those before it are held. If one of those is lost, the wait ends.
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

// Releases all keys, since somebody else may have had the lost one meanwhile.
void LockSet::State::beginAgain() {
  engine_->releaseAll(locks, callEnd(), false);
  locks.clear();
  lost_ = std::stop_source();
}

void LockSet::State::add(Lock lock) {
  locks.push_back(std::move(lock));
  engine_->loseTogether(locks.back(), lost_);
}

ReleaseResult LockSet::State::release(bool awaited) noexcept {
  if (engine_ == nullptr) return ReleaseResult::notHeld;
  const Instant until = callEnd();
  const ReleaseResult worst = engine_->releaseAll(locks, until, awaited);
  detail::Engine::leave(std::move(engine_), until);
  return worst;
}

LockSet::LockSet() noexcept = default;
LockSet::LockSet(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
LockSet::LockSet(LockSet&&) noexcept = default;

LockSet& LockSet::operator=(LockSet&&) noexcept = default;
LockSet::~LockSet() = default;

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
  return state_->release(true);
}

std::optional<LockSet> LockManager::tryLockAll(std::vector<std::string_view> keys,
                                               const LockOptions& options) {
  const auto engine = this->engine();
  const auto terms = engine->termsOf(options, std::chrono::milliseconds{0});
  auto state = std::make_unique<LockSet::State>(engine);
  LockSet::State::Missing missing;
  if (!state->takeAll(inOrder(std::move(keys)), terms, missing)) return std::nullopt;
  return LockSet(std::move(state));
}

LockSet LockManager::lockAll(std::vector<std::string_view> keys, const LockOptions& options) {
  const auto engine = this->engine();
  const auto terms = engine->termsOf(options, forever);
  const auto ordered = inOrder(std::move(keys));
  auto state = std::make_unique<LockSet::State>(engine);
  LockSet::State::Missing missing;
  if (state->takeAll(ordered, terms, missing)) return LockSet(std::move(state));
  const std::string which = "the locks of " + std::to_string(ordered.size()) + " keys ";
  if (terms.stop.stop_requested() || engine->stopped())
    throw Cancelled("the wait for " + which + "was cancelled at " + quoted(missing.key));
  throw LockTimeout(which + "were not all free within " + formatDuration(terms.waitFor) + ": " +
                    quoted(missing.key) +
                    (missing.lost ? " was lost while others were being taken" : " was busy"));
}

}  // namespace lockkeeper
