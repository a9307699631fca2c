#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "lease/held_claims.h"
#include "line/claim_line.h"
#include "lockkeeper/internal/backoff.h"
#include "lockkeeper/stream/shared_poll.h"
#include "queue/waiting_lease.h"
#include "store/etcd_store.h"

namespace lockkeeper::etcd {

/// The one watch stream of this process: it tells which claims are removed, and so wakes up those who wait
/// for one, and tells of claims of our own that somebody else has removed. Made when the first one comes to
/// wait, and again when it is lost; kept when nobody waits. There is no thread behind it: of those who wait,
/// one reads it for all (SharedPoll), and keeps the lease on which they wait alive.
///
/// A stream that tells more than is read is dropped: who waits would hear of what happened long ago. A
/// gateway may drop it, too, so nobody waits for it without an end. Thread-safe.
class WakeUps {
 public:
  /// What a waiter has heard.
  enum class News {
    none,
    changed,     ///< The queue has changed, or may have: it should be read.
    enoughGone,  ///< As many of those before it were removed as it needs.
  };

  /// One who waits. Must end before the WakeUps; one thread at a time.
  class Waiter {
   public:
    /// `claim` is its key in the store.
    Waiter(WakeUps& all, std::string claim, const std::stop_token& stop);
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter();

    /// To be called before the queue is read: from now on it hears of every claim there that is removed.
    void watchAll();

    /// The queue was read: it needs to hear only of `obstacles`, of which there are some. False while the
    /// stream is not there.
    bool watch(const Obstacles& obstacles);

    /// Blocks until there is news, `until`, or the stop. Calls that this thread makes for all meanwhile end
    /// by `end`.
    News wait(Instant until, Instant end);

    /// When it was told to stop; the end of time when it was not.
    Instant stoppedAt() const;

   private:
    friend class WakeUps;

    void stopped();
    void removed(const std::string& claim, std::int64_t revision);

    WakeUps& all_;
    const std::string claim_;
    Obstacles obstacles_;  // needed is 0: it wants to hear of everything
    News news_ = News::none;
    SharedPoll::Waiter sleeper_;
    const std::stop_token stop_;
    Instant stoppedAt_ = Instant::max();
    const std::stop_callback<std::function<void()>> onStop_;  // the last one: it uses the others
  };

  WakeUps(EtcdStore& store, WaitingLease& lease, HeldClaims& held);
  WakeUps(const WakeUps&) = delete;
  WakeUps& operator=(const WakeUps&) = delete;

  /// Makes all who wait read their queues.
  void wakeAll();

  /// Reads what the stream has told meanwhile, if it is there and nobody else reads it. Does not block.
  void readPending();

 private:
  using Lock = SharedPoll::Lock;

  Instant pollOnce(Lock& lock, Instant until, Instant end);
  void poll(Instant until);
  void dial(Instant end);
  bool readStream() noexcept;
  bool readLines() noexcept;
  bool accept(const std::string& line);
  void deliver(const std::string& claim, std::int64_t revision);
  void drop();
  void changed();

  EtcdStore& store_;
  WaitingLease& lease_;
  HeldClaims& held_;
  const std::string request_;

  SharedPoll poll_;
  std::multimap<std::string, Waiter*, std::less<>> waiters_;  // by the root of their queue
  bool live_ = false;                                         // the server has told that it watches

  // Of the one who reads.
  std::unique_ptr<Connection> connection_;
  Instant answerBy_{};
  Instant nextDial_ = Instant::min();
  std::optional<Instant> behindSince_{};  // more has come than was read
  Backoff backoff_;
};

}  // namespace lockkeeper::etcd
