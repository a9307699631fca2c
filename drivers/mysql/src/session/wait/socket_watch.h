#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lockkeeper/base/clock.h"

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

  /// A socket that can be guarded, by one guard at a time. It must stay open while this lives.
  class Socket {
   public:
    Socket(SocketWatch& watch, int number);
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket();

   private:
    friend class SocketWatch;

    SocketWatch& watch_;
    const int number_;
    std::atomic<Instant> until_ = Instant::max();  // while it is guarded
  };

  /// Shuts the socket down at `until`, unless it is gone by then. Takes a mutex only when the thread sleeps
  /// for longer.
  class Guard {
   public:
    Guard(Socket& socket, Instant until);
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() { socket_.until_ = Instant::max(); }

   private:
    Socket& socket_;
  };

 private:
  void run();
  Instant shutDownExpired(Instant now);

  const std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Socket*> sockets_;
  std::atomic<Instant> sleepsUntil_ = Instant::max();  // changed under the mutex
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace lockkeeper::mysql
