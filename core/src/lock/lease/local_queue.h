#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/hash_chains.h"
#include "lockkeeper/base/clock.h"
#include "lockkeeper/internal/waker_pool.h"

namespace lockkeeper::detail {

struct Lease;

/// Puts the callers of one process in line for each key, first come, first served, so that only one of them
/// asks the store. The next one's turn comes at the very moment that the one before leaves: a hand-over
/// inside the process needs no polling, and may come with the lease. Thread-safe.
class LocalQueue {
 public:
  explicit LocalQueue(std::shared_ptr<Clock> clock);
  ~LocalQueue();

  /// What the first one in line knows of the key.
  enum class Answer : char {
    taken,  ///< It holds the key, or the store has said last that somebody else holds it.
    none,   ///< The store has not answered.
  };

  using Hash = std::uint32_t;
  static Hash hashOf(std::string_view key) { return static_cast<Hash>(std::hash<std::string_view>{}(key)); }

  class Turn;

  /// How long a grant of the store may be handed on in line.
  struct HandingOn {
    Instant until{};
    Instant askedAt{};  ///< When the store was asked for the grant.
  };

  /// The result of enter().
  struct Entered {
    bool turn = false;                 ///< The lease has the turn.
    bool atOnce = false;               ///< It did not have to wait for it.
    bool handedOver = false;           ///< The lease has the turn and what the store has granted.
    Answer otherwise = Answer::taken;  ///< Without a turn: what the first one in line knows.
  };

  /// How long a call waits in line.
  struct Patience {
    Instant until;  ///< It waits for its turn until then,
    Instant
        answerBy;  ///< and after that for the answer to an attempt of the first one in line, if there is one.
    Instant began;                           ///< It waits for a store that does not answer from then on,
    std::chrono::nanoseconds longestOutage;  ///< and for so long.
  };

  /// When a call that has `began` gives up if the store, which has not answered since `unansweredSince`, goes
  /// on like that.
  static constexpr Instant endOfOutage(Instant unansweredSince, Instant began,
                                       std::chrono::nanoseconds longestOutage) {
    return saturatingAdd(std::max(unansweredSince, began), longestOutage);
  }

  /// The answer of the first one in line, for a caller whose time is up at `until`, so that it need not get
  /// in line. Empty if it has to: its time is not up, or the first one has no answer yet.
  std::optional<Answer> answerAtOnce(std::string_view key, Hash hash, Instant until);

  /// Gives `lease` the turn for its key if nobody is in line. Does not wait.
  bool tryEnter(Lease& lease);

  /// Waits until `lease` has the turn for its key, until the caller's `patience` is over, or until `stop`.
  /// The lease is in use until the call returns.
  Entered enter(Lease& lease, const Patience& patience, const std::stop_token& stop);

  /// A caller of this process has waited in the store's queue, until `now`, for the key of that hash. Whoever
  /// wants the key within a second should wait there without asking first. A hint: only the latest keys are
  /// remembered.
  void noteStoreWait(Hash hash, Instant now) noexcept;
  bool hasLatelyWaited(Hash hash, Instant now) const noexcept;

 private:
  struct Waiter {
    Lease& lease;
    std::condition_variable& waker;
    bool outOfTime = false;  // it waits for the answer only
    bool turn = false;
    bool handedOver = false;  // the turn came with a grant
    std::optional<Answer> answer{};

    bool over() const { return turn || answer; }
  };
  /// Those who wait behind the first one, for one key. It moves from turn to turn.
  struct Line {
    std::list<Waiter*> waiters{};
    int outOfTime = 0;  // how many of the waiters are
    Instant unansweredSince = Instant::max();
    HandingOn handingOn{};

    Waiter& takeFirst();
  };
  /// What noteStoreWait() has noted.
  struct StoreWait {
    Hash hash = 0;
    Instant countsUntil{};
  };
  struct Shard;

  static constexpr int shardBits = 4;
  static constexpr std::chrono::seconds storeWaitsKept{1};

  static void begin(Shard& shard, Turn& turn);
  Shard& shardOf(Hash hash) const;

  const std::shared_ptr<Clock> clock_;
  const std::unique_ptr<Shard[]> shards_;
};

/// The place of a lease as the first one in line for its key. It leaves the line when it is destroyed. The
/// queue must outlive it. A lease of a share is in no line.
class LocalQueue::Turn {
 public:
  /// `hash` is that of `key`.
  Turn(std::string key, Hash hash) : key_(std::move(key)), keyHash_(hash) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { leave(); }

  const std::string& key() const noexcept { return key_; }

  /// Gives the turn to the next one in line. Does nothing if it is not the first one.
  void leave() noexcept;

  /// Drops the place without touching the line, which in a forked child is the parent's.
  void forget() noexcept;

  /// Gives its place to another turn for the same key.
  void moveTo(Turn& other) noexcept;

  /// Its attempt at the store has ended, with `answer`; those in line whose time is up take that for theirs.
  /// With Answer::none, the store has not answered since `unansweredSince`. A turn begins with an attempt.
  void attemptEnded(Answer answer, Instant unansweredSince = Instant::max()) noexcept;
  /// The next attempt begins.
  void attemptBegins() noexcept;

  /// Since when the store has not answered the one that had the turn before; Instant::max() if it has, or if
  /// there was none. To be called by the one that has the turn.
  Instant unansweredSince() const noexcept;

  /// Whether somebody is in line behind.
  bool isFollowed() const noexcept;

  /// Only for a turn that somebody has waited behind, and that has not left.
  HandingOn& handingOn() noexcept { return line_->handingOn; }

  /// Hands the turn over to the next one in line, if there is one and `accepts` returns true for its lease.
  /// Returns the condition that the caller has to notify; null if nothing was handed over.
  template <class Accepts>
  std::condition_variable* handOver(Accepts&& accepts) noexcept;

 private:
  friend class LocalQueue;
  std::size_t hash() const { return keyHash_; }
  bool hasWaiters() const noexcept { return line_ && !line_->waiters.empty(); }
  void moveUnderMutex(Turn& other) noexcept;
  std::condition_variable* moveToFirst() noexcept;

  const std::string key_;
  Shard* shard_ = nullptr;      // null when it is not first in line
  Turn* next_ = nullptr;        // in the hash chains
  std::unique_ptr<Line> line_;  // made by the first who waits
  const Hash keyHash_;
  std::optional<Answer> answer_;  // empty while an attempt is under way
};

/// The turns of some of the keys. Each shard has a mutex, so that different keys seldom wait for each other.
struct LocalQueue::Shard {
  std::mutex mutex;
  HashChains<Turn, &Turn::next_, &Turn::hash> turns;
  WakerPool wakers;                        // in use by callers alone, which keep the queue alive
  std::array<StoreWait, 16> storeWaits{};  // the latest of each place, which the hash chooses

  Turn* find(std::string_view key, Hash hash) const;
  StoreWait& storeWaitOf(Hash hash) { return storeWaits[hash % storeWaits.size()]; }
};

// By the highest bits of the hash: the chains use the lowest ones.
inline LocalQueue::Shard& LocalQueue::shardOf(Hash hash) const {
  return shards_[hash >> (std::numeric_limits<Hash>::digits - shardBits)];
}

template <class Accepts>
std::condition_variable* LocalQueue::Turn::handOver(Accepts&& accepts) noexcept {
  if (shard_ == nullptr) return nullptr;
  const std::lock_guard held(shard_->mutex);
  if (!hasWaiters() || !accepts(line_->waiters.front()->lease)) return nullptr;
  line_->waiters.front()->handedOver = true;
  return moveToFirst();
}

}  // namespace lockkeeper::detail
