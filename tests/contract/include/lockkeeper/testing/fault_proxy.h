#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "lockkeeper/testing/proxy/proxy_connection.h"
#include "lockkeeper/testing/proxy/proxy_fault.h"

namespace lockkeeper::testing {

/// A TCP proxy between a driver and its server that spoils the traffic when told to. Runs on a thread of its
/// own. Thread-safe; only deliverHeld() blocks. After a fault that happens once, traffic passes untouched
/// again.
class FaultProxy {
 public:
  /// Listens on a free port of 127.0.0.1 and connects each client to `upstreamPort` there.
  explicit FaultProxy(std::uint16_t upstreamPort);
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;
  /// Ends all connections.
  ~FaultProxy();

  /// Where a driver finds it.
  std::uint16_t port() const { return port_; }

  /// Replaces the present fault, for the connections that are open and for those to come, and starts the
  /// counts of requests(), replyBytes() and fired() anew.
  void set(ProxyFault fault);
  /// From now on, traffic passes untouched.
  void passThrough() { set({}); }
  /// Ends a connection after so many more bytes of replies, once.
  void cutReplies(std::size_t afterBytes, Ending ending) {
    set({.kind = ProxyFault::Kind::cut, .bytes = afterBytes, .ending = ending});
  }

  /// Connects clients that come from now on to another server, as a name does that leads elsewhere.
  void leadTo(std::uint16_t upstreamPort);

  /// Ends all connections that are open.
  void endConnections(Ending ending);
  /// Ends those of which a request is kept back.
  void endHeldConnections(Ending ending);

  /// Sends what was kept of a request to the server, on the connection of the client that has left. True when
  /// the server has answered it, false when it has ended the connection.
  bool deliverHeld();

  /// How many clients have connected since the proxy was made.
  std::size_t connections() const { return locked(connected_); }
  /// How often clients have sent something after a reply since the last set(): their round trips.
  std::size_t requests() const { return locked(requests_); }
  /// Bytes of replies passed to clients since the last set().
  std::size_t replyBytes() const { return locked(replyBytes_); }
  /// What was kept of a request since the last set(): a test may send it to the server late.
  std::string held() const { return locked(held_); }
  /// How often the fault has really hit something since the last set(): 0 means that a test has shown
  /// nothing.
  std::size_t fired() const { return locked(fired_); }

 private:
  using Kind = ProxyFault::Kind;
  static constexpr std::size_t floodBytes = 65536;

  static short interest(bool read, bool write) {
    return static_cast<short>((read ? POLLIN : 0) | (write ? POLLOUT : 0));
  }
  [[noreturn]] static void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
  }
  template <class Value>
  Value locked(const Value& value) const {
    const std::lock_guard guard(mutex_);
    return value;
  }

  void run();
  void accept();
  /// The socket to the server of the client that has left, of which a request is kept back; -1 for none.
  int takeHeldServer();
  void serve(detail::ProxyConnection& connection, short clientEvents, short serverEvents);
  void spoil(detail::ProxyConnection& connection);
  void hold(detail::ProxyConnection& connection);
  int pollTimeout() const;
  void wakeUp() const;

  std::uint16_t port_ = 0;
  int listener_ = -1;
  int wake_ = -1;

  mutable std::mutex mutex_;
  bool stopping_ = false;
  std::uint16_t upstreamPort_;
  ProxyFault fault_;
  std::size_t connected_ = 0;
  std::size_t requests_ = 0;
  std::size_t replyBytes_ = 0;
  std::size_t fired_ = 0;
  std::string held_;
  int heldServer_ = -1;
  std::vector<std::unique_ptr<detail::ProxyConnection>> open_;

  std::thread thread_;
};

inline FaultProxy::FaultProxy(std::uint16_t upstreamPort) : upstreamPort_(upstreamPort) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || ::bind(listener_, generic, length) != 0 || ::listen(listener_, 128) != 0 ||
      ::getsockname(listener_, generic, &length) != 0) {
    fail("fault proxy");
  }
  port_ = ntohs(address.sin_port);
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) fail("eventfd");
  thread_ = std::thread([this] { run(); });
}

inline FaultProxy::~FaultProxy() {
  {
    std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wakeUp();
  thread_.join();
  if (heldServer_ >= 0) ::close(heldServer_);
  ::close(listener_);
  ::close(wake_);
}

inline void FaultProxy::leadTo(std::uint16_t upstreamPort) {
  const std::lock_guard guard(mutex_);
  upstreamPort_ = upstreamPort;
}

inline void FaultProxy::set(ProxyFault fault) {
  {
    std::lock_guard guard(mutex_);
    fault_ = std::move(fault);
    requests_ = 0;
    replyBytes_ = 0;
    fired_ = 0;
    held_.clear();
    for (const auto& connection : open_) {
      connection->hasSent = false;
      connection->isStopped = false;
      connection->notBefore.reset();
    }
  }
  wakeUp();
}

inline void FaultProxy::endConnections(Ending ending) {
  {
    std::lock_guard guard(mutex_);
    for (const auto& connection : open_) connection->end(ending);
  }
  wakeUp();
}

inline void FaultProxy::endHeldConnections(Ending ending) {
  {
    std::lock_guard guard(mutex_);
    for (const auto& connection : open_) {
      if (connection->isHeld) connection->end(ending);
    }
  }
  wakeUp();
}

inline bool FaultProxy::deliverHeld() {
  constexpr int patience = 10'000;  // ms
  int server = -1;
  for (int waited = 0; (server = takeHeldServer()) < 0 && waited < patience; ++waited) ::usleep(1000);
  if (server < 0) throw std::runtime_error("fault proxy: no client has left of which a request is kept");
  const std::string request = held();
  (void)!::send(server, request.data(), request.size(), MSG_NOSIGNAL);
  pollfd answer{server, POLLIN, 0};
  char first = 0;
  const bool answered = ::poll(&answer, 1, patience) > 0 && ::recv(server, &first, 1, 0) == 1;
  ::close(server);
  return answered;
}

inline int FaultProxy::takeHeldServer() {
  const std::lock_guard guard(mutex_);
  for (const auto& connection : open_) {
    if (const int server = connection->takeHeldServer(); server >= 0) return server;
  }
  return std::exchange(heldServer_, -1);
}

}  // namespace lockkeeper::testing

#include "lockkeeper/testing/proxy/proxy_thread.h"
