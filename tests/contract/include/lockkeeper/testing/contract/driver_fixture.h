#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "lockkeeper/base/random.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/error.h"
#include "lockkeeper/testing/driver_factory.h"

#include <gtest/gtest.h>

namespace lockkeeper::testing {

/// A key with a token: somebody who wants, or holds, a lock.
struct Claimant {
  std::string key;
  std::string owner = "contract:1";
  Token token = Token::generate(*systemRandom());
  std::optional<Share> share{};
  bool ahead = false;  ///< As in AcquireRequest.

  Claim claim() const { return {key, token, owner, share}; }
};

/// A claim that waits in the store's queue. Told to stop when the object ends, so that a failed test does not
/// hang.
class Waiting {
 public:
  explicit Waiting(std::function<AcquireResult(std::stop_token)> call)
      : result_(std::async(std::launch::async, std::move(call), stop_.get_token())) {}
  Waiting(Waiting&&) = default;
  ~Waiting() { stop(); }

  void stop() { stop_.request_stop(); }

  /// Whether get() would return at once.
  bool isOver() const {
    return result_.valid() && result_.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
  }

  /// Fails the test when the wait has no end.
  AcquireResult get() {
    if (result_.wait_for(std::chrono::seconds{20}) != std::future_status::ready) {
      ADD_FAILURE() << "the claim still waits";
      stop();
    }
    return result_.get();
  }

 private:
  std::stop_source stop_;
  std::future<AcquireResult> result_;
};

/// The suite. Each test has a key of its own, and two clients of the store.
class DriverContract : public ::testing::TestWithParam<DriverFactory> {
 protected:
  static constexpr const char* notBatchable = "the driver is not Batchable";
  static constexpr const char* notBatchReleasing = "the driver is not BatchReleasing";
  static constexpr const char* notBrowsable = "the driver is not Browsable";
  static constexpr const char* notBreakable = "the driver is not Breakable";
  static constexpr const char* noPermits = "the driver has no Permits";
  static constexpr const char* notPostable = "the driver is not Postable";
  static constexpr const char* notWaitable = "the driver is not Waitable";
  static constexpr std::chrono::milliseconds longTtl = std::chrono::minutes{10};

  static std::string uniqueKey() { return "contract-" + Token::generate(*systemRandom()).hex(); }

  Instant now() const { return GetParam().clock->now(); }
  Instant deadline() const { return now() + std::chrono::seconds{10}; }
  std::chrono::milliseconds shortTtl() const { return GetParam().shortTtl; }
  static std::chrono::nanoseconds drift(std::chrono::milliseconds ttl) {
    return std::chrono::nanoseconds{ttl} / 100 + std::chrono::milliseconds{2};
  }

  AcquireResult ask(const Claimant& who, std::chrono::milliseconds ttl = longTtl, bool resend = false) {
    return ask(*driver, who, ttl, resend);
  }
  AcquireResult ask(LockDriver& at, const Claimant& who, std::chrono::milliseconds ttl = longTtl,
                    bool resend = false) {
    return at.acquire(
        {.claim = who.claim(), .ttl = ttl, .deadline = deadline(), .resend = resend, .ahead = who.ahead});
  }
  std::optional<Granted> grant(const Claimant& who, std::chrono::milliseconds ttl = longTtl,
                               bool resend = false) {
    const AcquireResult result = ask(who, ttl, resend);
    const auto* granted = std::get_if<Granted>(&result);
    return granted == nullptr ? std::nullopt : std::optional{*granted};
  }
  bool isBusy(const Claimant& who) { return std::holds_alternative<Busy>(ask(who)); }
  /// The same, of a lease that ends at `end`: nothing is known any more when that has come meanwhile.
  bool isBusyBefore(Instant end, const Claimant& who) {
    return std::holds_alternative<Busy>(ask(who, shortTtl())) || now() >= end;
  }
  /// Whether who only tries does not get the key, because others wait for it. Gives it back if it does.
  bool keepsOutANewcomer(const Claimant& who) {
    if (isBusy(who)) return true;
    EXPECT_EQ(release(who), ReleaseOutcome::released);
    return false;
  }

  /// Somebody who wants `weight` of the key's `limit` permits.
  Claimant sharer(std::uint32_t weight, std::uint32_t limit) const {
    Claimant who{key};
    who.share = Share{.weight = weight, .limit = limit};
    return who;
  }
  std::vector<Holder> shareHolders() { return capability<Permits>(*driver)->shareHolders(key, deadline()); }

  std::vector<std::string> ownersOfWaiters(const std::string& of) {
    std::vector<std::string> owners;
    const auto listed = capability<WaiterBrowsable>(*driver)->waiters({&of, 1}, deadline());
    for (const Waiter& each : listed.at(0)) owners.push_back(each.owner);
    return owners;
  }

  /// What release and renew answer when nobody holds the key.
  static ReleaseOutcome releaseOfNothing() {
    return GetParam().goneIsUncertain ? ReleaseOutcome::ownerUnknown : ReleaseOutcome::notOwner;
  }
  static RenewOutcome renewalOfNothing() {
    return GetParam().goneIsUncertain ? RenewOutcome::ownerUnknown : RenewOutcome::notOwner;
  }

  ReleaseOutcome release(const Claimant& who) { return driver->release(who.claim(), deadline()); }
  std::optional<Holder> holder(const std::string& of) { return driver->holder(of, deadline()); }

  RenewOutcome renew(const Claimant& who, std::chrono::milliseconds ttl = longTtl) {
    Renewal renewal{.claim = who.claim(), .ttl = ttl};
    driver->renew({&renewal, 1}, deadline());
    return renewal.outcome;
  }

  bool breakLock(const std::string& which, const Holder* shown = nullptr) {
    return capability<Breakable>(*driver)->breakLock(which, deadline(), shown);
  }

  /// Waits in the store's queue, on a thread of its own. `who` must outlive the result. Asks again when the
  /// store has ended the wait, as core does: on a machine that stands still, a waiter may be silent for too
  /// long.
  Waiting waitFor(const Claimant& who, Instant until) { return waitFor(*driver, who, until); }
  Waiting waitFor(LockDriver& at, const Claimant& who, Instant until) {
    return Waiting([this, &at, &who, until](const std::stop_token& stop) {
      for (bool again = false;; again = true) {
        try {
          return capability<Waitable>(at)->acquireWaiting({.claim = who.claim(),
                                                           .ttl = longTtl,
                                                           .deadline = deadline(),
                                                           .resend = again,
                                                           .ahead = who.ahead,
                                                           .waits = true},
                                                          std::max(until - now(), Instant::duration{0}),
                                                          stop);
        } catch (const WithdrawalUnknown&) {
          throw;
        } catch (const Error& error) {
          const bool mayAskAgain =
              error.code() == ErrorCode::storeUnavailable || error.code() == ErrorCode::outcomeUnknown;
          if (!mayAskAgain || now() >= until || stop.stop_requested()) throw;
        }
      }
    });
  }

  /// Returns when `count` claims wait in the store's queue, where the factory can tell.
  ::testing::AssertionResult queued(std::size_t count) {
    if (!GetParam().queued) return ::testing::AssertionSuccess();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (GetParam().queued() != count) {
      if (std::chrono::steady_clock::now() > end) {
        return ::testing::AssertionFailure() << GetParam().queued() << " claims wait, not " << count;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return ::testing::AssertionSuccess();
  }
  /// Waits until `result`, the last one of so many, is seen to wait, where the factory can tell. False when
  /// it is over first.
  bool isSeenWaiting(const Waiting& result, std::size_t count = 1) {
    while (GetParam().queued && GetParam().queued() != count) {
      if (result.isOver()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return true;
  }
  /// Whether a waiter may have lost its place since `began`, because the machine has stood still.
  bool mayHaveLostAPlace(Instant began) const { return now() - began >= GetParam().placeKeptFor; }

  /// Which of them has its answer next.
  std::size_t nextOf(const std::vector<Waiting>& results) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    for (;;) {
      const auto found = std::ranges::find_if(results, &Waiting::isOver);
      if (found != results.end() || std::chrono::steady_clock::now() > end) {
        return static_cast<std::size_t>(found - results.begin());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
  Instant farAway() const { return now() + std::chrono::minutes{1}; }

  /// Lets time pass until the key is free. Fails when that takes far longer than the lease.
  ::testing::AssertionResult expires(const std::string& which, std::chrono::milliseconds ttl) {
    constexpr int patience = 100;
    GetParam().advance(ttl + std::chrono::milliseconds{1});
    for (int attempt = 0; attempt < patience; ++attempt) {
      if (!holder(which)) return ::testing::AssertionSuccess();
      GetParam().advance((ttl + GetParam().expirySlack) / 10);
    }
    return ::testing::AssertionFailure() << "the lease has not ended after ten times its length";
  }

  const std::string key = uniqueKey();
  const std::shared_ptr<LockDriver> driver = GetParam().open();
  const std::shared_ptr<LockDriver> otherClient = GetParam().open();
};

}  // namespace lockkeeper::testing
