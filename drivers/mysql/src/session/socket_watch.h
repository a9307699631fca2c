#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "lockkeeper/driver/clock.h"

namespace lockkeeper::mysql {

/// Ends calls into a database client that knows no timeout: shuts a socket down when its time is over, so
/// that the blocked call returns with an error. One thread for all sockets. Thread-safe.
class SocketWatch {
 public:
  explicit SocketWatch(std::shared_ptr<Clock> clock);
  SocketWatch(const SocketWatch&) = delete;
  SocketWatch& operator=(const SocketWatch&) = delete;
  ~SocketWatch();

  /// Starts the thread, unless it runs: before the first guard. Throws std::system_error.
  void start();

  /// Watches while it lives. The socket must stay open until then.
  class Guard {
   public:
    Guard(SocketWatch& watch, int socket, Instant until);
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard();

   private:
    SocketWatch& watch_;
    std::multimap<Instant, int>::iterator entry_;
  };

 private:
  void run();

  const std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Instant, int> sockets_;
  Instant sleepsUntil_ = Instant::max();
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace lockkeeper::mysql
