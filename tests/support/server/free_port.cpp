#include "free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>

namespace lockkeeper::test {
namespace {

constexpr std::uint16_t firstPort = 15000;
constexpr std::uint16_t lastPort = 32000;
constexpr int attempts = 1000;

bool isFree(std::uint16_t port) {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool bound = ::bind(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  return bound;
}

// An abstract socket of the port's name is the reservation: the kernel takes it back when this process ends.
bool reserve(std::uint16_t port) {
  const int reservation = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (reservation < 0) return false;
  const std::string name = "lockkeeper-test-port-" + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(reservation, reinterpret_cast<const sockaddr*>(&address), length) == 0) return true;
  ::close(reservation);
  return false;
}

}  // namespace

std::uint16_t freePort() {
  static std::mutex mutex;
  static std::mt19937 generator{std::random_device{}()};
  std::lock_guard guard(mutex);
  std::uniform_int_distribution<std::uint16_t> ports(firstPort, lastPort);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const std::uint16_t port = ports(generator);
    if (reserve(port) && isFree(port)) return port;
  }
  throw std::runtime_error("no free loopback port between 15000 and 32000");
}

}  // namespace lockkeeper::test
