#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "decorators.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/error.h"

namespace lockkeeper::test {

enum class Call { acquire, renew, release };

enum class Fault {
  unavailable,  ///< Not sent.
  requestLost,  ///< Sent, not applied, no answer.
  replyLost,    ///< Sent, applied, no answer.
  config,
  invalid,    ///< Refused for its ttl; not sent.
  uncertain,  ///< Renewals only: ownership uncertain.
};

/// A real driver behind a network that fails on demand, and that counts what went through. It is not
/// Waitable, whatever the driver behind it can; of its capabilities it has Permits.
class FaultyDriver final : public PlainDecorator {
 public:
  using PlainDecorator::PlainDecorator;

  void* findCapability(const std::type_info& type) noexcept override {
    return type == typeid(Permits) ? inner_->findCapability(type) : nullptr;
  }

  /// The next calls of this kind fail, one fault each.
  void fail(Call call, std::initializer_list<Fault> faults) {
    const std::lock_guard guard(mutex_);
    auto& queue = faults_[index(call)];
    queue.insert(queue.end(), faults);
  }
  /// All calls of this kind fail until heal().
  void failAlways(Call call, Fault fault) {
    const std::lock_guard guard(mutex_);
    always_[index(call)] = fault;
  }
  void heal() {
    const std::lock_guard guard(mutex_);
    always_ = {};
    for (auto& queue : faults_) queue.clear();
  }
  /// The next calls of this kind stay inside the driver until resume().
  void hang(Call call) {
    const std::lock_guard guard(mutex_);
    hanging_[index(call)] = true;
  }
  void resume() {
    const std::lock_guard guard(mutex_);
    hanging_ = {};
    changed_.notify_all();
  }
  /// Lets those through that hang now; later ones hang as before.
  void answerHanging() {
    const std::lock_guard guard(mutex_);
    ++answered_;
    inside_ = 0;
    changed_.notify_all();
  }
  void awaitHanging(int count = 1) {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return inside_ >= count; });
  }
  void awaitCalls(Call call, int count) {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return ended_[index(call)] >= count; });
  }
  int calls(Call call) const {
    const std::lock_guard guard(mutex_);
    return calls_[index(call)];
  }

  /// How many calls of acquire() said that their claim had been sent before.
  int resends() const {
    const std::lock_guard guard(mutex_);
    return resends_;
  }

  /// What the last renewal was given.
  Instant renewDeadline() const {
    const std::lock_guard guard(mutex_);
    return renewDeadline_;
  }

  /// Runs inside acquire, after the store has answered.
  std::function<void()> onAcquired = [] {};

  /// Runs before a release goes to the store; what it throws keeps it from going there.
  std::function<void(std::string_view key)> onReleased = [](std::string_view) {};

  /// So many bytes of an owner are shown.
  std::size_t shownOfOwner = std::string::npos;

  AcquireResult acquire(const AcquireRequest& request) override {
    const Ended ended(*this, Call::acquire);
    const auto fault = begin(Call::acquire);
    {
      const std::lock_guard guard(mutex_);
      resends_ += request.resend ? 1 : 0;
    }
    if (fault == Fault::replyLost) (void)inner_->acquire(request);
    refuse(fault);
    auto result = inner_->acquire(request);
    onAcquired();
    return result;
  }

  void renew(std::span<Renewal> renewals, Instant deadline) override {
    const Ended ended(*this, Call::renew);
    const auto fault = begin(Call::renew);
    {
      const std::lock_guard guard(mutex_);
      renewDeadline_ = deadline;
    }
    if (!fault || fault == Fault::replyLost) inner_->renew(renewals, deadline);
    if (!fault) return;
    for (auto& renewal : renewals) {
      renewal.outcome = fault == Fault::unavailable ? RenewOutcome::unavailable
                        : fault == Fault::uncertain ? RenewOutcome::ownerUnknown
                                                    : RenewOutcome::unknown;
      renewal.cause = "renewal failed, says the test";
    }
  }

  ReleaseOutcome release(const Claim& claim, Instant deadline) override {
    const Ended ended(*this, Call::release);
    const auto fault = begin(Call::release);
    if (fault == Fault::replyLost) inner_->release(claim, deadline);
    refuse(fault);
    onReleased(claim.key);
    return inner_->release(claim, deadline);
  }

  std::optional<Holder> holder(std::string_view key, Instant deadline) override {
    auto holder = inner_->holder(key, deadline);
    if (holder) holder->owner.resize(std::min(holder->owner.size(), shownOfOwner));
    return holder;
  }
  std::string name() const override { return "network"; }

 private:
  struct Ended {
    Ended(FaultyDriver& driver, Call call) : driver_(driver), call_(call) {}
    ~Ended() {
      const std::lock_guard guard(driver_.mutex_);
      ++driver_.ended_[index(call_)];
      driver_.changed_.notify_all();
    }
    FaultyDriver& driver_;
    Call call_;
  };

  static std::size_t index(Call call) { return static_cast<std::size_t>(call); }

  std::optional<Fault> begin(Call call) {
    std::unique_lock guard(mutex_);
    ++calls_[index(call)];
    ++inside_;
    changed_.notify_all();
    changed_.wait(guard, [&, before = answered_] {
      if (answered_ != before) return true;
      if (hanging_[index(call)]) return false;
      --inside_;
      return true;
    });
    auto& queue = faults_[index(call)];
    if (queue.empty()) return always_[index(call)];
    const Fault fault = queue.front();
    queue.pop_front();
    return fault;
  }

  static void refuse(const std::optional<Fault>& fault) {
    if (!fault) return;
    if (*fault == Fault::unavailable) throw StoreUnavailable("down, says the test");
    if (*fault == Fault::config) throw ConfigError("misconfigured, says the test");
    if (*fault == Fault::invalid) throw std::invalid_argument("not such a ttl, says the test");
    throw OutcomeUnknown("reply lost, says the test");
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::array<std::deque<Fault>, 3> faults_;
  std::array<std::optional<Fault>, 3> always_;
  std::array<bool, 3> hanging_{};
  std::array<int, 3> calls_{};
  std::array<int, 3> ended_{};
  int inside_ = 0;
  int answered_ = 0;
  Instant renewDeadline_{};
  int resends_ = 0;
};

}  // namespace lockkeeper::test
