#include "lock/keeper/unawaited_releases.h"
#include "lockkeeper/driver/batches.h"

#include <algorithm>
#include <new>
#include <utility>

namespace lockkeeper::detail {

namespace {

// Some 10 MB of claims. To forget more of them in a long outage costs only time, since they end with their
// ttl.
constexpr std::size_t most = 65'536;
constexpr std::string_view forgottenText =
    "more than 65536 releases wait for the store to answer, or memory is short: some keys stay busy until "
    "their leases end";

// After so many failures in a row, probably all of the store is down, and not only one of its servers.
constexpr int mostFailures = 4;
// After the first failure, each claim gets only that part of the time, so that those behind it need not wait
// for a server that is silent.
constexpr int shareAfterFailure = 8;

// The next caller reads the reply to a posted release along with its own. If none comes for so long, the
// reply is read by itself.
constexpr std::chrono::milliseconds readAfter{10};

}  // namespace

UnawaitedReleases::UnawaitedReleases(std::shared_ptr<LockDriver> driver, Environment environment,
                                     std::string owner, std::chrono::nanoseconds operationTimeout,
                                     std::chrono::nanoseconds retryPause, std::mutex& mutex,
                                     std::function<void(Instant)> wakeUpAt)
    : driver_(std::move(driver)),
      store_(driver_->name()),
      postable_(capability<Postable>(*driver_)),
      environment_(std::move(environment)),
      owner_(std::move(owner)),
      operationTimeout_(operationTimeout),
      retryPause_(retryPause),
      mutex_(mutex),
      wakeUpAt_(std::move(wakeUpAt)) {}

bool UnawaitedReleases::post(const Claim& claim, std::shared_ptr<PostListener> listener) noexcept {
  if (postable_ == nullptr) return false;
  ++posted_;  // before the outcome can be told
  bool sent = false;
  try {
    sent = postable_->postRelease(claim, std::move(listener));
  } catch (...) {
    // No memory, or a driver that breaks its contract.
  }
  if (!sent) {
    ended();
    return false;
  }
  if (readIsPlanned_ || readIsPlanned_.exchange(true)) return true;
  const std::lock_guard held(mutex_);
  readLater();
  wakeUpAt_(readAt_);
  return true;
}

void UnawaitedReleases::ended() noexcept {
  ++ended_;
  if (!finishing_) return;
  { const std::lock_guard held(mutex_); }
  allEnded_.notify_all();
}

void UnawaitedReleases::abandon(const Claim& claim, Instant until) noexcept {
  if (claims_.size() >= most) dropEnded();
  if (claims_.size() >= most) {
    forgotten_ = true;
    return;
  }
  try {
    claims_.push_front({std::string(claim.key), claim.token, claim.share, until});
  } catch (const std::bad_alloc&) {
    forgotten_ = true;
    return;  // what the store has granted ends by itself
  }
  wakeUpAt_(due());
}

// Drops claims whose leases have ended, in an outage in which none is tried. Not each time, since it walks
// through all of them.
void UnawaitedReleases::dropEnded() noexcept {
  const Instant now = environment_.clock->now();
  if (now < dropAt_) return;
  dropAt_ = now + retryPause_;
  std::erase_if(claims_, [&](const Abandoned& claim) { return claim.until <= now; });
}

Instant UnawaitedReleases::due() const {
  return std::min(readAt_, claims_.empty() || releasing_ ? Instant::max() : tryAt_);
}

void UnawaitedReleases::work(std::unique_lock<std::mutex>& held) {
  if (readAt_ <= environment_.clock->now()) {
    readPosted(held);
  } else {
    releaseAbandoned(held);
  }
}

void UnawaitedReleases::readLater() {
  readUpTo_ = posted_;
  readAt_ = environment_.clock->now() + readAfter;
}

void UnawaitedReleases::readPosted(std::unique_lock<std::mutex>& held) {
  readAt_ = Instant::max();
  if (ended_ < readUpTo_) {
    held.unlock();
    postable_->awaitPosted(environment_.clock->now() + operationTimeout_);
    held.lock();
  }
  readIsPlanned_ = false;
  if (ended_ < posted_ && !readIsPlanned_.exchange(true)) readLater();
}

void UnawaitedReleases::releaseAbandoned(std::unique_lock<std::mutex>& held) {
  releasing_ = true;
  tellForgotten(held);
  bool hasFailed = false;
  int failures = 0;  // in a row
  for (std::size_t left = claims_.size(); left > 0 && !claims_.empty() && failures < mostFailures; --left) {
    std::list<Abandoned> taken;
    taken.splice(taken.begin(), claims_, claims_.begin());
    const Abandoned& claim = taken.front();
    const Instant now = environment_.clock->now();
    if (claim.until <= now) continue;
    held.unlock();
    bool done = answered(claim, now + operationTimeout_ / (hasFailed ? shareAfterFailure : 1));
    held.lock();
    if (!done && finishing_) {
      // finish() has not seen this claim, which was out of the list.
      held.unlock();
      done = postLast(claim);
      held.lock();
    }
    failures = done ? 0 : failures + 1;
    if (done) continue;
    claims_.splice(claims_.end(), taken);
    hasFailed = true;
  }
  if (hasFailed) tryAt_ = environment_.clock->now() + retryPause_;
  releasing_ = false;
}

void UnawaitedReleases::tellForgotten(std::unique_lock<std::mutex>& held) {
  if (!std::exchange(forgotten_, false)) return;
  held.unlock();
  const Instant now = environment_.clock->now();
  environment_.tell(
      {.kind = EventKind::noted, .store = store_, .began = now, .ended = now, .text = forgottenText});
  held.lock();
}

void UnawaitedReleases::finish(std::unique_lock<std::mutex>& held) {
  finishing_ = true;
  const Instant deadline = environment_.clock->now() + operationTimeout_;
  if (ended_ < posted_) {
    held.unlock();
    postable_->awaitPosted(deadline);
    held.lock();
    // Another thread may have read them, and still be telling.
    while (ended_ < posted_ && environment_.clock->now() < deadline) {
      environment_.clock->wait(held, allEnded_, deadline);
    }
  }
  const std::list<Abandoned> claims = std::move(claims_);
  claims_.clear();
  tellForgotten(held);
  held.unlock();
  int failures = 0;  // in a row
  for (const Abandoned& claim : claims) {
    if (claim.until <= environment_.clock->now()) continue;
    failures = postLast(claim) || answered(claim, deadline) ? 0 : failures + 1;
    if (failures == mostFailures) break;
  }
  if (postable_ != nullptr && !claims.empty()) postable_->awaitPosted(deadline);
  held.lock();
}

// Without a listener, since there will be no other try whatever its outcome is.
bool UnawaitedReleases::postLast(const Abandoned& claim) noexcept {
  try {
    return postable_ != nullptr && postable_->postRelease(claimOf(claim), nullptr);
  } catch (...) {
    return false;
  }
}

bool UnawaitedReleases::answered(const Abandoned& claim, Instant deadline) noexcept {
  const Instant began = environment_.clock->now();
  try {
    driver_->release(claimOf(claim), deadline);
    return true;
  } catch (const Error& error) {
    environment_.tell({.kind = EventKind::attemptFailed,
                       .key = claim.key,
                       .store = store_,
                       .began = began,
                       .ended = environment_.clock->now(),
                       .error = error.code(),
                       .text = error.what()});
    return error.code() == ErrorCode::config;  // will not get better by itself
  } catch (...) {
    return false;  // a driver that breaks its contract
  }
}

}  // namespace lockkeeper::detail
