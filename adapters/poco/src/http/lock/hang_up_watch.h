#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace lockkeeper::poco {

/// Tells those who wait on behalf of clients when a client hangs up: one thread that sleeps in the kernel
/// until one does (epoll). It starts with the first client. A client that only shuts down its sending side
/// counts too: the kernel cannot tell the difference. Thread-safe.
class HangUpWatch {
 public:
  /// One client that is being watched. The socket must stay open as long as it lives.
  class Client {
   public:
    Client(HangUpWatch& watch, int socket);
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    ~Client();

    /// Triggered, on the watch's thread, when the client hangs up.
    std::stop_token hungUp() const { return stop_.get_token(); }

   private:
    HangUpWatch& watch_;
    const int socket_;
    std::stop_source stop_;
    std::uint64_t id_ = 0;
  };

  /// Throws Poco::SystemException when the system has no more descriptors.
  HangUpWatch();
  HangUpWatch(const HangUpWatch&) = delete;
  HangUpWatch& operator=(const HangUpWatch&) = delete;
  ~HangUpWatch();

 private:
  void run();

  const int epoll_;
  const int wake_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::stop_source> clients_;
  std::uint64_t lastId_ = 0;  // 0 is the wake-up's
  std::thread thread_;
};

}  // namespace lockkeeper::poco
