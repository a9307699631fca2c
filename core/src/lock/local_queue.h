#pragma once

#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "lockkeeper/driver/clock.h"
#include "lockkeeper/internal/string_map.h"

namespace lockkeeper::detail {

/// Puts the callers of one process in line for each key, first come, first served, so that only one of them
/// asks the store. The next one's turn comes at the very moment that the one before leaves: a hand-over
/// inside the process needs no polling. Thread-safe.
class LocalQueue {
 public:
  explicit LocalQueue(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  /// Being first in line for a key. Leaves the line when destroyed. The queue must outlive it.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& other) noexcept { swap(other); }
    Turn& operator=(Turn&& other) noexcept {
      Turn(std::move(other)).swap(*this);
      return *this;
    }
    ~Turn() {
      if (queue_ != nullptr) queue_->leave(key_);
    }

    /// The store has granted the key: who waits now waits for its holder.
    void markHeld() noexcept { queue_->markHeld(key_); }

   private:
    friend class LocalQueue;
    Turn(LocalQueue& queue, std::string_view key) : queue_(&queue), key_(key) {}
    void swap(Turn& other) noexcept {
      std::swap(queue_, other.queue_);
      std::swap(key_, other.key_);
    }

    LocalQueue* queue_ = nullptr;
    std::string_view key_;  // points into the queue's map
  };

  /// Waits for the caller's turn, until `until` or `stop`; then empty.
  std::optional<Turn> enter(std::string_view key, Instant until, const std::stop_token& stop);

  /// Whether the one whose turn it is has not got the key from the store yet.
  bool isBeingClaimed(std::string_view key) const;

 private:
  struct Waiter {
    std::condition_variable wakeUp;
    bool turn = false;
  };
  struct Line {
    std::list<Waiter*> waiters;
    bool held = false;
  };

  void leave(std::string_view key) noexcept;
  void markHeld(std::string_view key) noexcept;

  const std::shared_ptr<Clock> clock_;
  mutable std::mutex mutex_;
  StringMap<Line> lines_;
};

}  // namespace lockkeeper::detail
