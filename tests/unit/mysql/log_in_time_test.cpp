// A log-in ends by its deadline, whatever the server does.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "hosts/session_opener.h"
#include "lockkeeper/error.h"

namespace lockkeeper::mysql {
namespace {

using namespace std::chrono_literals;

/// What the name "several" leads to.
std::vector<const char*> addressesOfSeveral;

}  // namespace
}  // namespace lockkeeper::mysql

/// The system's, which the client library asks, but for that name.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
  static const auto system = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (name == nullptr || std::string_view(name) != "several") return system(name, service, hints, found);
  for (const char* const each : lockkeeper::mysql::addressesOfSeveral) {
    if (const int error = system(each, service, hints, found); error != 0) return error;
    while (*found != nullptr) found = &(*found)->ai_next;
  }
  return 0;
}

namespace lockkeeper::mysql {
namespace {

/// On 127.0.0.`host`; on a port of its own when that is 0.
int listening(std::uint16_t& port, unsigned host = 1, int backlog = 1) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET,
                      .sin_port = htons(port),
                      .sin_addr = {htonl((127U << 24U) + host)},
                      .sin_zero = {}};
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(socket, any, size), 0);
  EXPECT_EQ(::listen(socket, backlog), 0);
  EXPECT_EQ(::getsockname(socket, any, &size), 0);
  port = ntohs(address.sin_port);
  return socket;
}

/// Sends `first` to its one client and, unless it is empty, `second` when that has answered; from then on one
/// byte every few milliseconds, until the client has gone or ten seconds are over.
class DrippingServer {
 public:
  explicit DrippingServer(std::string first, std::string second = "")
      : first_(std::move(first)), second_(std::move(second)) {}
  DrippingServer(const DrippingServer&) = delete;
  DrippingServer& operator=(const DrippingServer&) = delete;
  ~DrippingServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }

  std::uint16_t port() const { return port_; }

  bool clientLeft() {
    left_.wait(Client::unknown);
    return left_ == Client::left;
  }

 private:
  enum class Client { unknown, left, stayed };

  void drip() {
    const int client = ::accept(listener_, nullptr, nullptr);
    Client end = Client::stayed;
    char received[512];
    ::send(client, first_.data(), first_.size(), MSG_NOSIGNAL);
    if (!second_.empty() && ::recv(client, received, sizeof(received), 0) > 0) {
      ::send(client, second_.data(), second_.size(), MSG_NOSIGNAL);
    }
    for (int i = 0; i < 1000 && end == Client::stayed; ++i) {
      pollfd source{client, POLLIN, 0};
      const bool gone = ::poll(&source, 1, 10) > 0 && ::recv(client, received, sizeof(received), 0) <= 0;
      if (gone || ::send(client, "x", 1, MSG_NOSIGNAL) < 0) end = Client::left;
    }
    ::close(client);
    left_ = end;
    left_.notify_all();
  }

  const std::string first_;
  const std::string second_;
  std::uint16_t port_ = 0;
  const int listener_ = listening(port_);
  std::atomic<Client> left_ = Client::unknown;
  std::thread thread_{[this] { drip(); }};
};

/// 127.0.0.2 with this port takes no connection and refuses none, as a host that is down.
class DeadAddress {
 public:
  explicit DeadAddress(std::uint16_t port = 0) : port_(port), sockets_{listening(port_, 2, 0)} {
    // They fill its queue.
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::getsockname(sockets_[0], any, &size), 0);
    for (std::size_t i = 1; i < sockets_.size(); ++i) {
      sockets_[i] = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      ::connect(sockets_[i], any, size);
    }
  }
  DeadAddress(const DeadAddress&) = delete;
  DeadAddress& operator=(const DeadAddress&) = delete;
  ~DeadAddress() {
    for (const int each : sockets_) ::close(each);
  }

  std::uint16_t port() const { return port_; }

 private:
  std::uint16_t port_;
  std::array<int, 5> sockets_;
};

void expectRefusal(const std::string& host, std::uint16_t port, const std::string& parameters = "") {
  const auto uri = StoreUri::parse("mysql+version://shop:s3cr3t@" + host + ":" + std::to_string(port) +
                                   "/locks" + parameters);
  SessionOpener opener(ServerOptions::fromUri(uri), {}, {});
  EXPECT_THROW((void)opener.open(systemClock()->now() + 200ms), StoreUnavailable);
}

TEST(LogInTime, AGreetingThatDripsByteByByteIsGivenUpAtTheDeadline) {
  DrippingServer server(std::string("\0\0\1\0\x0a", 5));  // the head of a long greeting
  expectRefusal("127.0.0.1", server.port());
  EXPECT_TRUE(server.clientLeft());
}

TEST(LogInTime, ATlsHandshakeThatDripsByteByByteIsGivenUpAtTheDeadline) {
  // A greeting of a server that can do TLS, and the head of a long handshake.
  const std::string greeting(
      "\x0a"
      "5.5.5-10.11.0-MariaDB\0"
      "\1\0\0\0"
      "12345678\0"
      "\xff\xff\x2d\2\0\xff\x81\x15\0\0\0\0\0\0\0\0\0\0"
      "123456789012\0"
      "mysql_native_password\0",
      1 + 22 + 4 + 9 + 18 + 13 + 22);
  const std::string header{static_cast<char>(greeting.size()), '\0', '\0', '\0'};
  DrippingServer server(header + greeting, std::string("\x16\x03\x03\x3f\xff\x02\0\x3f\xfb", 9));
  expectRefusal("127.0.0.1", server.port(), "?tls=on&verify=off");
  EXPECT_TRUE(server.clientLeft());
}

TEST(LogInTime, DeadAddressesOfAHostShareTheTimeUntilTheDeadline) {
  const DeadAddress dead;
  addressesOfSeveral.assign(16, "127.0.0.2");
  const Instant began = systemClock()->now();
  expectRefusal("several", dead.port());
  EXPECT_LT(systemClock()->now() - began, 8s) << "a second each, or more";
}

TEST(LogInTime, ADeadAddressOfAHostLeavesTimeForTheNextOne) {
  DrippingServer server(std::string("\0\0\1\0\x0a", 5));
  const DeadAddress dead(server.port());
  addressesOfSeveral = {"127.0.0.2", "127.0.0.1"};
  expectRefusal("several", server.port());
  EXPECT_TRUE(server.clientLeft());
}

}  // namespace
}  // namespace lockkeeper::mysql
