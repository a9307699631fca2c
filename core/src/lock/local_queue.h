#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include "base/hash_chains.h"
#include "lockkeeper/driver/clock.h"
#include "lockkeeper/internal/waker_pool.h"

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

  /// How a call of enter() has ended.
  struct Entered {
    bool turn = false;        ///< The lease has it now.
    bool handedOver = false;  ///< The turn has come with what the store has granted, both are in the lease.
    Answer otherwise = Answer::taken;
  };

  static std::size_t hashOf(std::string_view key) { return std::hash<std::string_view>{}(key); }

  /// For those who need not get in line, because their time is up and what they would hear then is known.
  std::optional<Answer> answerAtOnce(std::string_view key, std::size_t hash, Instant until);

  /// Makes it the turn of `lease` for its key, of which `hash` is the hash, if nobody is in line. Does not
  /// wait.
  bool tryEnter(Lease& lease, std::size_t hash);

  /// Waits until the turn has come to `lease`, for its key, of which `hash` is the hash; until `until` or
  /// `stop`. Without a turn, says what the first in line knows: an attempt that is under way then is waited
  /// for, until `answerBy`, since it asks what the caller would. The lease is in use until the call returns.
  Entered enter(Lease& lease, std::size_t hash, Instant until, Instant answerBy, const std::stop_token& stop);

  /// A caller of this process has stood in the store's queue for the key of that hash, until `now`: who asks
  /// for it within a second does well to get in line there at once. A hint: one key may be taken for another.
  void noteStoreWait(std::size_t hash, Instant now) noexcept {
    storeWaits_[hash % storeWaits_.size()].store(now + storeWaitsKept, std::memory_order_relaxed);
  }
  bool hasLatelyWaited(std::size_t hash, Instant now) const noexcept {
    return now < storeWaits_[hash % storeWaits_.size()].load(std::memory_order_relaxed);
  }

 private:
  struct Waiter {
    Lease& lease;
    std::condition_variable& waker;
    bool outOfTime = false;  // waits for the answer only
    bool turn = false;
    bool handedOver = false;  // with the turn
    std::optional<Answer> answer{};

    bool over() const { return turn || answer; }
  };
  /// Of one key. It is in the lease of the first in line; without one, there is none.
  struct Line {
    std::string_view key{};
    std::size_t keyHash = 0;
    Line* next = nullptr;  // in the hash chains
    std::list<Waiter*> waiters{};
    int outOfTime = 0;               // of them
    std::optional<Answer> answer{};  // empty while an attempt is under way

    std::size_t hash() const { return keyHash; }
    Waiter& takeFirst();
  };
  /// Of the keys of some hashes, so that keys that differ seldom wait for each other.
  struct Shard {
    std::mutex mutex;
    HashChains<Line, &Line::next, &Line::hash> lines;
    WakerPool wakers;  // in use by callers of the engine, which they keep alive, in a forked child too

    Line* find(std::string_view key, std::size_t hash) const;
  };
  static constexpr int shardBits = 4;
  static constexpr std::chrono::seconds storeWaitsKept{1};

  static void beginLine(Shard& shard, Lease& lease, std::size_t hash);

  // The chains go by the lowest bits.
  Shard& shardOf(std::size_t hash) {
    return shards_[hash >> (std::numeric_limits<std::size_t>::digits - shardBits)];
  }

  const std::shared_ptr<Clock> clock_;
  std::array<Shard, std::size_t{1} << shardBits> shards_;
  std::array<std::atomic<Instant>, 64> storeWaits_{};  // until when they count
};

/// Being first in line for a key, and the line. A lease has one; it leaves the line when it is destroyed. The
/// queue must outlive it. That of a share is in no line.
class LocalQueue::Turn {
 public:
  Turn() = default;
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { leave(); }

  /// Makes it the next one's turn. Nothing for one that is not first in line.
  void leave() noexcept;

  /// Leaves nothing: in a forked child, the line is the parent's.
  void forget() noexcept { shard_ = nullptr; }

  /// Puts another one in its place, for the same key, which `key` keeps.
  void moveTo(Turn& other, std::string_view key) noexcept;

  /// What its attempt has come to, for those in line whose time is up. A turn begins with an attempt.
  void tell(Answer answer) noexcept { set(answer); }
  /// The next attempt begins.
  void ask() noexcept { set(std::nullopt); }

  /// Whether somebody is in line behind.
  bool isFollowed() const noexcept;

  /// Hands the turn over to the next one in line, if there is one and `accepts` returns true for its lease.
  /// Returns what is to be notified then, and null otherwise.
  template <class Accepts>
  std::condition_variable* handOver(Accepts&& accepts) noexcept;

 private:
  friend class LocalQueue;
  void moveUnderMutex(Turn& other, std::string_view key) noexcept;
  std::condition_variable* moveToFirst() noexcept;
  void set(std::optional<Answer> answer) noexcept;

  Shard* shard_ = nullptr;  // null when it is not first in line
  Line line_;
};

template <class Accepts>
std::condition_variable* LocalQueue::Turn::handOver(Accepts&& accepts) noexcept {
  if (shard_ == nullptr) return nullptr;
  const std::lock_guard held(shard_->mutex);
  if (line_.waiters.empty() || !accepts(line_.waiters.front()->lease)) return nullptr;
  line_.waiters.front()->handedOver = true;
  return moveToFirst();
}

}  // namespace lockkeeper::detail
