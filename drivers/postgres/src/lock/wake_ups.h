#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "session/sessions.h"

namespace lockkeeper::postgres {

/// Tells those who wait in a queue that it is their turn, as the server notifies it. All of a driver share
/// one session, which one of their threads reads for all; there is none while nobody waits. Thread-safe.
class WakeUps {
 public:
  WakeUps(Sessions& sessions, std::string channel);
  WakeUps(const WakeUps&) = delete;
  WakeUps& operator=(const WakeUps&) = delete;
  ~WakeUps();

  /// Begins to listen for a waiter, unless that is so already or cannot be had, as behind a pooler. Blocks
  /// until `deadline`. Each call needs a later one of unlisten().
  void listen(Instant deadline) noexcept;
  /// From now on, notifications of the place are remembered for await().
  void add(std::int64_t place);
  /// Ends it for one waiter, who has got his key or gives up. The session stays open for a while if he has
  /// got it, because then tidyUp() will be called.
  void unlisten(std::optional<std::int64_t> place, bool isGranted) noexcept;
  /// Reads what nobody waits for any more, and closes a session that was not needed lately. Does not block.
  void tidyUp() noexcept;

  /// Returns when the place has been notified since the last call, at `until`, upon `stop`, or when there is
  /// no session. False then: the waiter must poll.
  bool await(std::int64_t place, Instant until, const std::stop_token& stop) noexcept;

 private:
  bool isAlive() noexcept;
  void read(std::unique_lock<std::mutex>& held, Instant until);

  Sessions& sessions_;
  const std::string channel_;
  const int wakeUp_;  ///< Interrupts the thread that reads.

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Session> session_;
  std::size_t listeners_ = 0;
  bool reading_ = false;
  bool opening_ = false;
  Instant unusedSince_{};
  std::map<std::int64_t, bool> notified_;  // By place.
};

}  // namespace lockkeeper::postgres
