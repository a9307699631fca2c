#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "proxy_fault.h"

namespace lockkeeper::test {

/// A client of a FaultProxy and its connection to the server: two sockets and the bytes between them. Used by
/// the proxy's thread alone. Never blocks.
class ProxyConnection {
 public:
  /// Owns `client`; connects to 127.0.0.1:upstreamPort.
  ProxyConnection(int client, std::uint16_t upstreamPort);
  ProxyConnection(const ProxyConnection&) = delete;
  ProxyConnection& operator=(const ProxyConnection&) = delete;
  ~ProxyConnection();

  int client() const { return client_; }
  int server() const { return server_; }
  bool ended() const { return client_ < 0; }

  /// There is something to write to the server.
  bool wantsServer() const { return !isStopped && !requests.empty(); }

  void readClient();
  void readServer();
  void write();
  /// The connection to the server stays open if a request is held.
  void end(Ending ending);
  /// The socket of that, once the client's is closed, to be closed by the caller; -1 for none.
  int takeHeldServer() { return ended() ? std::exchange(heldServer_, -1) : -1; }

  /// Hands the first `count` bytes of the waiting replies over to be sent to the client.
  void pass(std::size_t count);
  /// Ends the connection in order once the server has closed it and all of its bytes have been passed.
  void endIfDrained();

  std::string requests;      ///< From the client, not yet sent to the server.
  std::string replies;       ///< From the server, not yet passed.
  std::string outgoing;      ///< Passed, not yet sent to the client.
  bool isHeld = false;       ///< What the client sends is kept, and does not reach the server.
  bool isStopped = false;    ///< What the client sends waits until this is false again.
  bool hasSent = false;      ///< The client has sent something since this was last set to false.
  bool isReplaced = false;   ///< What else comes of a reply is dropped, until the client sends something.
  bool wasAnswered = false;  ///< Replies have been passed since the client last sent something.
  std::optional<std::chrono::steady_clock::time_point> notBefore;  ///< When the next replies may pass.

 private:
  int client_;
  int server_;
  int heldServer_ = -1;
  bool serverClosed_ = false;
};

}  // namespace lockkeeper::test
