#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/internal/backoff.h"
#include "lockkeeper/redis/redis_options.h"
#include "lockkeeper/stream/shared_poll.h"
#include "wire/dial/dialer.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

/// A connection of its own on which one server wakes up those of this process who wait in its queues: it is
/// subscribed to one channel, of a random name, or on a Redis Cluster from version 7 on to one for each slot,
/// so that a message is published at one node instead of at all; 64 of these stay when nobody waits in them
/// any more. Made when the first one comes to wait, and again when it is lost; kept when nobody waits. There
/// is no thread behind it: of those who wait, one polls it for all (SharedPoll).
///
/// A message may get lost, so nobody waits for one without an end. Thread-safe.
class Subscription {
 public:
  /// What a waiter has heard; all may be empty.
  struct News {
    bool granted = false;                               ///< It has the key,
    std::optional<Fence> fence{};                       ///< with this fence, if it wants one.
    std::optional<std::chrono::milliseconds> lookIn{};  ///< It should look then.
    bool channelChanged = false;                        ///< It is not that of the last newAddress().
  };

  /// One who waits, and has a number. Must end before the subscription; one thread at a time.
  class Waiter {
   public:
    /// Waits for a key of this hash slot.
    Waiter(Subscription& subscription, std::uint16_t slot);
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter();

    /// What is to be published to wake this one up, and where.
    struct Address {
      std::uint64_t number;
      std::string channel;  ///< Empty while messages would not be heard.
    };
    /// A new one for each look: what a store still tells to a former one is not heard. So what is heard was
    /// said after that look.
    Address newAddress();

    /// Blocks until there is news, `until`, or `stop`.
    News wait(Instant until, const std::stop_token& stop);

   private:
    friend class Subscription;

    Subscription& subscription_;
    const std::uint16_t slot_;
    std::uint64_t number_ = 0;
    News news_;
    bool heard_ = false;  // the channel was not empty
    SharedPoll::Waiter sleeper_;
  };

  Subscription(const RedisOptions& options, const Environment& environment, const DialRules& rules = {});
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  /// Where "wanted" is to be published when somebody begins to wait for a lock of this slot that this process
  /// hands on by itself; empty while that would not be heard. Connects when needed. Does not block.
  std::string channelOfReports(std::uint16_t slot);

  /// Whether that has been heard since then. Takes in what has come, now and then, and does not block.
  bool reportedSince(Instant since) noexcept;

  /// A message seems to have got lost, or the server is no master any more: the connection is made again, and
  /// everybody polls until then.
  void suspect();

 private:
  using Lock = SharedPoll::Lock;

  /// Of one slot, on the present connection.
  struct SlotChannel {
    std::string name{};
    bool asked = false;  // the reply is due
    bool live = false;   // subscribed
    Instant nextAsk = Instant::min();
    Instant wantedAt = Instant::min();
  };

  /// To subscribe to a slot's channel, or to leave it.
  struct Question {
    std::uint16_t slot = 0;
    bool leaves = false;
  };

  Instant pollOnce(Lock& lock, Instant until);
  void pollNow(Lock& lock);
  Instant awaited(pollfd& polled) const;
  bool use(Instant now);
  void greet();
  bool answersDue() const { return !live_ || !asked_.empty(); }
  std::string channelOf(std::uint16_t slot);
  void want(std::uint16_t keySlot);
  /// Whose channel tells of keys in the slot: without channels for each slot, all have that of slot 0.
  std::uint16_t slotOf(std::uint16_t keySlot) const { return sharded_ ? keySlot : std::uint16_t{0}; }
  void leaveUnused(Instant now);
  void ask(Question question, Instant now);
  void takeIn(Instant now);
  void accept(const Reply& reply);
  void acceptError(const Reply& error);
  void notLeft(bool isRefused);
  void answered();
  void acceptOfSlot(std::string_view kind, std::string_view channel);
  void deliver(const std::string& message);
  void drop(Instant now);
  void disconnected();
  void wake(Waiter& waiter) { poll_.wake(waiter.sleeper_); }

  const ForkGuard forkGuard_;
  const Environment environment_;
  Clock& clock_;
  Dialer dialer_;
  const std::string channel_;

  SharedPoll poll_;
  std::map<std::uint64_t, Waiter*> waiters_;
  std::uint64_t lastNumber_;  // begins anywhere: nobody can tell it who may not read the queues
  bool live_ = false;         // connected, and not suspected
  bool refused_ = false;      // the server does not permit it
  bool refusalNoted_ = false;
  bool tellRefusal_ = false;
  Instant reportedAt_ = Instant::min();
  Instant nextPollNow_ = Instant::min();

  // Of the one who polls.
  std::unique_ptr<Dial> dial_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<ReplyReader> reader_;
  std::string out_;
  bool sharded_ = false;   // one channel for each slot
  bool probeDue_ = false;  // with `sharded_`: whether we may publish is not answered yet
  std::map<std::uint16_t, SlotChannel> slots_;
  std::deque<Question> asked_;  // about them
  bool mayLeave_ = true;        // the server permits it
  Instant answerBy_{};
  Instant nextDial_ = Instant::min();
  Backoff backoff_;
};

}  // namespace lockkeeper::redis
