#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "proxy_fault.h"

namespace lockkeeper::test {

class ProxyConnection;

/// A TCP proxy between a driver and its server that spoils the traffic when told to. Runs on a thread of its
/// own. Thread-safe. After a fault that happens once, traffic passes untouched again.
class FaultProxy {
 public:
  /// Listens on a free port of 127.0.0.1 and connects each client to `upstreamPort` there.
  explicit FaultProxy(std::uint16_t upstreamPort);
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;
  ~FaultProxy();

  std::uint16_t port() const { return port_; }

  /// Replaces the present fault, for the connections that are open and for those to come, and starts the
  /// counts of requests(), replyBytes() and fired() anew.
  void set(ProxyFault fault);
  void passThrough() { set({}); }
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
  std::size_t connections() const;
  /// How often clients have sent something after a reply since the last set(): their round trips.
  std::size_t requests() const;
  /// Bytes of replies passed to clients since the last set().
  std::size_t replyBytes() const;
  /// What was kept of a request since the last set(): a test may send it to the server late.
  std::string held() const;
  /// How often the fault has really hit something since the last set(): 0 means that a test has shown
  /// nothing.
  std::size_t fired() const;

 private:
  void run();
  void accept();
  /// The socket to the server of the client that has left, of which a request is kept back; -1 for none.
  int takeHeldServer();
  void serve(ProxyConnection& connection, short clientEvents, short serverEvents);
  void spoil(ProxyConnection& connection);
  void hold(ProxyConnection& connection);
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
  std::vector<std::unique_ptr<ProxyConnection>> open_;

  std::thread thread_;
};

}  // namespace lockkeeper::test
