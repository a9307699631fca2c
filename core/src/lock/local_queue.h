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

  /// What whoever is first in line knows of the key.
  enum class Answer {
    taken,  ///< It holds the key, or the store said last that somebody else does.
    none,   ///< The store has not answered.
  };

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

    /// What its attempt has come to, for those in line whose time is up. A turn begins with an attempt.
    void tell(Answer answer) noexcept { queue_->tell(key_, answer); }
    /// The next attempt begins.
    void ask() noexcept { queue_->tell(key_, std::nullopt); }

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

  struct Entered {
    std::optional<Turn> turn;
    Answer otherwise = Answer::taken;
  };

  /// Waits for the caller's turn, until `until` or `stop`. Without one, says what the first in line knows: an
  /// attempt that is under way then is waited for, until `answerBy`, since it asks what the caller would.
  Entered enter(std::string_view key, Instant until, Instant answerBy, const std::stop_token& stop);

 private:
  struct Waiter {
    std::condition_variable wakeUp;
    bool outOfTime = false;  // waits for the answer only
    bool turn = false;
    std::optional<Answer> answer{};
  };
  struct Line {
    std::list<Waiter*> waiters;
    int outOfTime = 0;             // of them
    std::optional<Answer> answer;  // empty while an attempt is under way
  };

  void leave(std::string_view key) noexcept;
  void tell(std::string_view key, std::optional<Answer> answer) noexcept;

  const std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  StringMap<Line> lines_;
};

}  // namespace lockkeeper::detail
