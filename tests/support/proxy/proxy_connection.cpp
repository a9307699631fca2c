#include "proxy_connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace lockkeeper::test {
namespace {

void prepare(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(socket, F_SETFL, O_NONBLOCK);
}

/// Appends what there is to read. False when the peer has closed or reset the connection.
bool readInto(int socket, std::string& target) {
  std::array<char, 16384> buffer;
  const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), 0);
  if (count > 0) target.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

void writeFrom(int socket, std::string& source) {
  if (source.empty()) return;
  const ssize_t count = ::send(socket, source.data(), source.size(), MSG_NOSIGNAL);
  if (count > 0) source.erase(0, static_cast<std::size_t>(count));
}

}  // namespace

ProxyConnection::ProxyConnection(int client, std::uint16_t upstreamPort)
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

ProxyConnection::~ProxyConnection() {
  end(Ending::fin);
  if (heldServer_ >= 0) ::close(heldServer_);
}

void ProxyConnection::readClient() {
  const std::size_t before = requests.size();
  if (!readInto(client_, requests)) return end(Ending::fin);
  if (requests.size() > before) hasSent = true;
}

void ProxyConnection::readServer() {
  if (!serverClosed_ && !readInto(server_, replies)) serverClosed_ = true;
}

void ProxyConnection::write() {
  if (wantsServer()) writeFrom(server_, requests);
  writeFrom(client_, outgoing);
}

void ProxyConnection::end(Ending ending) {
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

void ProxyConnection::pass(std::size_t count) {
  outgoing.append(replies, 0, count);
  replies.erase(0, count);
}

void ProxyConnection::endIfDrained() {
  if (serverClosed_ && replies.empty() && outgoing.empty()) end(Ending::fin);
}

}  // namespace lockkeeper::test
