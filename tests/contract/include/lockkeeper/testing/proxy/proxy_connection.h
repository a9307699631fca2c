#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "lockkeeper/testing/proxy/proxy_fault.h"

namespace lockkeeper::testing::detail {

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
  static void prepare(int socket) {
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::fcntl(socket, F_SETFL, O_NONBLOCK);
  }
  // Appends what there is to read. False when the peer has closed or reset the connection.
  static bool readInto(int socket, std::string& target) {
    std::array<char, 16384> buffer;
    const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (count > 0) target.append(buffer.data(), static_cast<std::size_t>(count));
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  }
  static void writeFrom(int socket, std::string& source) {
    if (source.empty()) return;
    const ssize_t count = ::send(socket, source.data(), source.size(), MSG_NOSIGNAL);
    if (count > 0) source.erase(0, static_cast<std::size_t>(count));
  }

  int client_;
  int server_;
  int heldServer_ = -1;
  bool serverClosed_ = false;
};

inline ProxyConnection::ProxyConnection(int client, std::uint16_t upstreamPort)
    : client_(client), server_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(upstreamPort);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // On loopback the kernel answers at once, even for a stopped server.
  if (::connect(server_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    end(Ending::rst);
    return;
  }
  prepare(client_);
  prepare(server_);
}

inline ProxyConnection::~ProxyConnection() {
  end(Ending::fin);
  if (heldServer_ >= 0) ::close(heldServer_);
}

inline void ProxyConnection::readClient() {
  const std::size_t before = requests.size();
  if (!readInto(client_, requests)) return end(Ending::fin);
  if (requests.size() > before) hasSent = true;
}

inline void ProxyConnection::readServer() {
  if (!serverClosed_ && !readInto(server_, replies)) serverClosed_ = true;
}

inline void ProxyConnection::write() {
  if (wantsServer()) writeFrom(server_, requests);
  writeFrom(client_, outgoing);
}

inline void ProxyConnection::end(Ending ending) {
  if (ended()) return;
  if (ending == Ending::rst) {
    const linger reset{1, 0};
    ::setsockopt(client_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  } else {
    // close() with unread requests would send a reset.
    ::shutdown(client_, SHUT_WR);
    readInto(client_, requests);
  }
  ::close(client_);
  if (isHeld) {
    heldServer_ = server_;
  } else {
    ::close(server_);
  }
  client_ = server_ = -1;
}

inline void ProxyConnection::pass(std::size_t count) {
  outgoing.append(replies, 0, count);
  replies.erase(0, count);
}

inline void ProxyConnection::endIfDrained() {
  if (serverClosed_ && replies.empty() && outgoing.empty()) end(Ending::fin);
}

}  // namespace lockkeeper::testing::detail
