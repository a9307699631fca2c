#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include "lockkeeper/driver/clock.h"
#include "lockkeeper/internal/string_map.h"

namespace lockkeeper::detail {

struct Lease;

/// Puts the callers of one process in line for each key, first come, first served, so that only one of them
/// asks the store. The next one's turn comes at the very moment that the one before leaves: a hand-over
/// inside the process needs no polling, and may come with the lease. Thread-safe.
class LocalQueue {
 public:
  explicit LocalQueue(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  /// What whoever is first in line knows of the key.
  enum class Answer {
    taken,  ///< It holds the key, or the store said last that somebody else does.
    none,   ///< The store has not answered.
  };

  class Turn;
  struct Entered;

  /// What `enter` returns when it does not have to wait; nothing when it does.
  std::optional<Entered> tryEnter(std::string_view key, Instant until);

  /// Waits for the caller's turn, until `until` or `stop`. Without one, says what the first in line knows: an
  /// attempt that is under way then is waited for, until `answerBy`, since it asks what the caller would.
  /// The turn may come with a lease, which has become `lease` then; so that is in use until the call returns.
  Entered enter(std::string_view key, Lease& lease, Instant until, Instant answerBy,
                const std::stop_token& stop);

 private:
  static constexpr std::size_t shardCount = 16;

  struct Waiter {
    Lease& lease;
    bool outOfTime = false;  // waits for the answer only
    bool turn = false;
    bool handedOver = false;  // with the turn, which is in `lease`
    std::optional<Answer> answer{};
  };
  struct Line {
    std::list<Waiter*> waiters;
    int outOfTime = 0;             // of them
    std::optional<Answer> answer;  // empty while an attempt is under way
  };
  using Lines = StringMap<Line>;
  /// Of the keys of one hash, so that keys that differ seldom wait for each other.
  struct Shard {
    std::mutex mutex;
    Lines lines;
  };

  Shard& shardOf(const HashedString& key) { return shards_[key.hash % shardCount]; }
  std::optional<Entered> tryEnter(Shard& shard, const HashedString& key, Instant until);

  const std::shared_ptr<Clock> clock_;
  std::array<Shard, shardCount> shards_;
};

/// Being first in line for a key. Leaves the line when destroyed. The queue must outlive it. A
/// default-constructed turn is in no line.
class LocalQueue::Turn {
 public:
  Turn() = default;
  Turn(Turn&& other) noexcept { swap(other); }
  Turn& operator=(Turn&& other) noexcept {
    Turn(std::move(other)).swap(*this);
    return *this;
  }
  ~Turn() {
    if (shard_ != nullptr) leave();
  }

  /// Leaves nothing: in a forked child, the line is the parent's.
  void forget() noexcept { shard_ = nullptr; }

  /// What its attempt has come to, for those in line whose time is up. A turn begins with an attempt.
  void tell(Answer answer) noexcept { set(answer); }
  /// The next attempt begins.
  void ask() noexcept { set(std::nullopt); }

  /// Whether somebody is in line behind.
  bool isFollowed() const noexcept;

  /// Hands the turn over to the next one in line, if there is one for whose lease `accepts` returns true, and
  /// has moved this turn there; Lease::turnCame is left to be notified. Nothing happens otherwise.
  template <class Accepts>
  void handOver(Accepts&& accepts);

 private:
  friend class LocalQueue;
  Turn(Shard& shard, Lines::value_type& line) : shard_(&shard), line_(&line) {}
  void swap(Turn& other) noexcept {
    std::swap(shard_, other.shard_);
    std::swap(line_, other.line_);
  }
  void set(std::optional<Answer> answer) noexcept;
  void leave() noexcept;

  Shard* shard_ = nullptr;
  Lines::value_type* line_ = nullptr;  // stays where it is while somebody has the turn
};

struct LocalQueue::Entered {
  std::optional<Turn> turn{};
  bool handedOver = false;
  Answer otherwise = Answer::taken;
};

template <class Accepts>
void LocalQueue::Turn::handOver(Accepts&& accepts) {
  Shard& shard = *shard_;
  Line& line = line_->second;
  const std::lock_guard held(shard.mutex);
  if (line.waiters.empty()) return;
  Waiter& next = *line.waiters.front();
  if (!accepts(next.lease)) return;
  line.waiters.pop_front();
  if (next.outOfTime) --line.outOfTime;
  next.handedOver = true;
  next.turn = true;
}

}  // namespace lockkeeper::detail
