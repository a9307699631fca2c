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

  /// What whoever is first in line knows of the key.
  enum class Answer : char {
    taken,  ///< It holds the key, or the store said last that somebody else does.
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

  /// How a call of enter() has ended.
  struct Entered {
    bool turn = false;        ///< The lease has it now,
    bool atOnce = false;      ///< and nobody was in line.
    bool handedOver = false;  ///< The turn has come with what the store has granted, both are in the lease.
    Answer otherwise = Answer::taken;
  };

  /// How long a call waits in line.
  struct Patience {
    Instant until;  ///< For its turn,
    Instant
        answerBy;   ///< then for the answer to an attempt that is under way: it asks what the caller would.
    Instant began;  ///< Since when, and
    std::chrono::nanoseconds longestOutage;  ///< for how long, it waits for a store that does not answer.
  };

  /// When a call that has begun then gives up, unless the store answers that has not since `unansweredSince`.
  static constexpr Instant endOfOutage(Instant unansweredSince, Instant began,
                                       std::chrono::nanoseconds longestOutage) {
    return saturatingAdd(std::max(unansweredSince, began), longestOutage);
  }

  /// A caller whose time is up at `until` does not get in line: it takes the answer that the first in line
  /// has. Empty when it has to get in line, since its time is not up or the first one has no answer.
  std::optional<Answer> answerAtOnce(std::string_view key, Hash hash, Instant until);

  /// Makes it the turn of `lease` for its key, if nobody is in line. Does not wait.
  bool tryEnter(Lease& lease);

  /// Waits until the turn has come to `lease`, for its key; for as long as the caller has `patience`, or
  /// until `stop`. Without a turn, says what the first in line knows. The lease is in use until the call
  /// returns.
  Entered enter(Lease& lease, const Patience& patience, const std::stop_token& stop);

  /// A caller of this process has stood in the store's queue for the key of that hash, until `now`: who asks
  /// for it within a second does well to get in line there at once. A hint: the queue remembers the latest
  /// keys only.
  void noteStoreWait(Hash hash, Instant now) noexcept;
  bool hasLatelyWaited(Hash hash, Instant now) const noexcept;

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
  /// Of one key: those behind the first. It moves from turn to turn.
  struct Line {
    std::list<Waiter*> waiters{};
    int outOfTime = 0;  // of them
    Instant unansweredSince = Instant::max();
    HandingOn handingOn{};

    Waiter& takeFirst();
  };
  /// One for a key of that hash.
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

/// Being first in line for a key. A lease has one; it leaves the line when it is destroyed. The queue must
/// outlive it. That of a share is in no line.
class LocalQueue::Turn {
 public:
  /// For the key of that hash.
  Turn(std::string key, Hash hash) : key_(std::move(key)), keyHash_(hash) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { leave(); }

  const std::string& key() const noexcept { return key_; }

  /// Makes it the next one's turn. Nothing for one that is not first in line.
  void leave() noexcept;

  /// Leaves nothing: in a forked child, the line is the parent's.
  void forget() noexcept;

  /// Puts another one in its place, for the same key.
  void moveTo(Turn& other) noexcept;

  /// What its attempt has come to, for those in line whose time is up. A turn begins with an attempt. With
  /// Answer::none: since when there has been no answer.
  void attemptEnded(Answer answer, Instant unansweredSince = Instant::max()) noexcept;
  /// The next attempt begins.
  void attemptBegins() noexcept;

  /// What the one before it in line has told last; Instant::max() if nobody was before it. To be asked by the
  /// one that has the turn.
  Instant unansweredSince() const noexcept;

  /// Whether somebody is in line behind.
  bool isFollowed() const noexcept;

  /// Only for a turn that somebody has waited behind, and that has not left.
  HandingOn& handingOn() noexcept { return line_->handingOn; }

  /// Hands the turn over to the next one in line, if there is one and `accepts` returns true for its lease.
  /// Returns what is to be notified then, and null otherwise.
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

/// The turns of the keys of some hashes, so that keys that differ seldom wait for each other.
struct LocalQueue::Shard {
  std::mutex mutex;
  HashChains<Turn, &Turn::next_, &Turn::hash> turns;
  WakerPool wakers;  // in use by callers of the engine, which they keep alive, in a forked child too
  std::array<StoreWait, 16> storeWaits{};  // the latest, each in the place that its hash chooses

  Turn* find(std::string_view key, Hash hash) const;
  StoreWait& storeWaitOf(Hash hash) { return storeWaits[hash % storeWaits.size()]; }
};

// The chains go by the lowest bits.
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
