#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/error.h"
#include "queue/subscription.h"
#include "store/redis_store.h"
#include "wire/protocol/composed_text.h"

namespace lockkeeper::redis {

/// The queues of one server: those who wait for a lock, first come, first served, whichever process they are
/// in. A release grants the lock to the first one that is alive and wakes it up (scripts/queue/queue.lua).
/// What is lost on the way, and whatever frees the key without knowing of queues, is found out by looking:
/// the first one looks four times a second, later once a second, and when the present lease ends; all of them
/// every four seconds. Thread-safe.
class WaitQueue {
 public:
  explicit WaitQueue(RedisStore& store);

  /// Waits for the claim's key, in `value`'s name, until it is granted, `until`, or `stop`. `ticket` is the
  /// place in the queue, empty when there is none yet; `wire` is that of the last look. Busy at once where
  /// other data is in the place of the queue. Throws as LockDriver::acquire()
  /// does, OutcomeUnknown when the claim may still be in the queue, or have the key; Redirected when the key,
  /// with its queue, has moved to another node.
  ///
  /// The lease of a grant counts from before the waiter's last look, since the store has granted the key
  /// after that look. With `minReplicas`, `wire` has written the grant.
  AcquireResult wait(const AcquireRequest& request, std::string_view value, Instant until,
                     const std::stop_token& stop, std::string& ticket, Request& wire);

  /// What the store is told so that it grants several turns: the keys of the queue, and the channel that
  /// those who begin to wait are reported to; empty while that would not be heard.
  struct Watch {
    ComposedText order{};
    ComposedText waiters{};
    std::string channel{};
  };
  Watch watch(std::string_view key);

  /// As Waitable.
  bool waitersReportedSince(Instant since) noexcept { return subscription_.reportedSince(since); }

  /// Frees the key if `value` has it, for the next one in the queue; leaves the queue otherwise. False: it
  /// did not have it. While the key's slot is on its way to another node, it only frees the key: who waits
  /// finds that by looking. Throws OutcomeUnknown then if it did not have it, for it may be in the queue.
  bool release(const Claim& claim, std::string_view value, Instant deadline);

  /// The same without waiting for the reply, as Postable::postRelease() says. False also as long as no
  /// release on the present connection has shown that the server has the script.
  bool postRelease(const Claim& claim, std::string_view value, std::shared_ptr<PostListener> listener);

  /// Frees the key, for the next one in the queue; with `grantId` (Holder::grantId), only while that has it.
  bool breakLock(std::string_view key, std::string_view grantId, Instant deadline);

  /// As Permits::resize().
  bool resize(std::string_view key, std::uint32_t limit, Instant deadline);

  /// The server is another one now: messages of the former one are none of ours. Does not block.
  void serverChanged() { subscription_.suspect(); }

 private:
  struct Place;
  struct Look;
  class PostedRelease;

  Look look(const Place& place, Subscription::Waiter& waiter, const AcquireRequest& request,
            std::string_view ticket, Instant deadline, Request& wire);
  Look lookIn(const Place& place, const AcquireRequest& request, const Request& wire);
  std::optional<Granted> grantIn(const Subscription::News& news, const Look& last,
                                 const AcquireRequest& request) const;
  Subscription::News waitForNews(Subscription::Waiter& waiter, Instant until,
                                 const std::stop_token& stop) const;
  void leave(const Place& place, Instant deadline);
  [[noreturn]] static void stillQueued(const StoreUnavailable& error);
  bool change(const Place& place, Instant deadline, std::string_view operation, std::string_view value,
              std::string_view further = {});
  ServerFault faultOf(const PostedRelease& posted);

  RedisStore& store_;
  Subscription subscription_;
  std::atomic<std::uint64_t> knownOn_ = 0;  // the connection on which the last release was answered
};

}  // namespace lockkeeper::redis
