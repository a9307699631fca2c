#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

#include "hosts/session_pool.h"
#include "session/wake_up.h"

namespace lockkeeper::mysql {

/// The place of a claim in the queue of its key. Those who wait ask the server for one name (GET_LOCK), which
/// it gives to them in the order in which they have come. Who has the name is the first in the queue, and
/// asks for the key. The queue tells who comes next, and nothing else: the rows alone decide who has the key.
class QueuePlace {
 public:
  /// `session` is for this place alone, and `cancelling` ends its wait; both must outlive it.
  /// `isReplaceable`: another server may take over from the session's.
  QueuePlace(SessionPool::Use& session, SessionPool& cancelling, std::string name,
             std::chrono::milliseconds ioTimeout, bool isReplaceable);
  QueuePlace(const QueuePlace&) = delete;
  QueuePlace& operator=(const QueuePlace&) = delete;
  /// Closes the session, unless it has left in time.
  ~QueuePlace();

  /// Waits until it is the first. False when that did not come by `until`, or until `stop`, which `wakeUp`
  /// belongs to, or until `getsPast`, which is called each second, was true; and when somebody has ended the
  /// wait. The first statement has an answer by `deadline`. Throws as SessionPool::Use::ask(), and as
  /// checkServer().
  bool enter(Instant deadline, Instant until, const std::stop_token& stop, const WakeUp& wakeUp,
             const std::function<bool()>& getsPast);

  /// Throws StoreUnavailable when another server takes the writes now, as far as is known.
  void checkServer() const;

  /// The next one is the first, as soon as the server has read it.
  void leave() noexcept;

  /// Nobody reads the answer of the queue while its waiter looks for another server, or at the key. Whoever
  /// does so for longer may lose the place.
  static constexpr std::chrono::milliseconds longestLook{900};

 private:
  bool getName(Instant until, const std::stop_token& stop, const WakeUp& wakeUp,
               const std::function<bool()>& getsPast);

  SessionPool::Use& session_;
  SessionPool& cancelling_;
  const std::string name_;
  const std::chrono::milliseconds ioTimeout_;
  const bool isReplaceable_;
  bool mayHaveName_ = false;
};

/// The name of the queue of this key of a table.
std::string queueName(const std::string& database, const std::string& table, std::string_view key);

}  // namespace lockkeeper::mysql
