#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "decorators.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"

namespace lockkeeper::test {

/// A store that takes posted releases. Nobody reads its replies to them but deliver() and awaitPosted().
class PostingDriver final : public Decorator, public Postable {
 public:
  using Decorator::Decorator;

  bool postRelease(const Claim& claim, std::shared_ptr<PostListener> listener) override {
    const std::lock_guard guard(mutex_);
    if (refusing) return false;
    replies_.push_back({std::move(listener), inner_->release(claim, {}), failure});
    return true;
  }
  void awaitPosted(Instant deadline) noexcept override {
    std::unique_lock guard(mutex_);
    ++awaited_;
    deadline_ = deadline;
    changed_.notify_all();
    changed_.wait(guard, [&] { return !silent_; });
    guard.unlock();
    deliver();
  }
  ReleaseOutcome release(const Claim& claim, Instant deadline) override {
    const ReleaseOutcome outcome = inner_->release(claim, deadline);
    const std::lock_guard guard(mutex_);
    ++released_;
    changed_.notify_all();
    return outcome;
  }
  void* findCapability(const std::type_info& type) noexcept override {
    return capabilityOf<Postable>(*this, type);
  }

  /// As a caller does that waits for another reply.
  void deliver() {
    std::deque<Posted> replies;
    {
      const std::lock_guard guard(mutex_);
      replies.swap(replies_);
    }
    for (const Posted& each : replies) {
      if (each.listener == nullptr) continue;
      if (each.failure) {
        each.listener->failed(*each.failure, "failed, says the test");
      } else {
        each.listener->answered(each.outcome);
      }
    }
  }
  std::size_t outstanding() const {
    const std::lock_guard guard(mutex_);
    return replies_.size();
  }

  void fallSilent() { setSilent(true); }
  void speak() { setSilent(false); }
  int awaited() const {
    const std::lock_guard guard(mutex_);
    return awaited_;
  }
  Instant awaitDeadline() const {
    const std::lock_guard guard(mutex_);
    return deadline_;
  }
  void awaitAwaited(int count) {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return awaited_ >= count; });
  }
  /// Until so many releases were not posted.
  void awaitReleased(int count) {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return released_ >= count; });
  }

  bool refusing = false;
  std::optional<ErrorCode> failure{};

 private:
  struct Posted {
    std::shared_ptr<PostListener> listener;
    ReleaseOutcome outcome;
    std::optional<ErrorCode> failure;
  };

  void setSilent(bool silent) {
    const std::lock_guard guard(mutex_);
    silent_ = silent;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Posted> replies_;
  bool silent_ = false;
  int awaited_ = 0;
  int released_ = 0;
  Instant deadline_{};
};

}  // namespace lockkeeper::test
