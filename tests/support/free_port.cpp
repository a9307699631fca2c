#include "free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <random>
#include <stdexcept>

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

}  // namespace

std::uint16_t freePort() {
  static std::mutex mutex;
  static std::mt19937 generator{std::random_device{}()};
  std::lock_guard guard(mutex);
  std::uniform_int_distribution<std::uint16_t> ports(firstPort, lastPort);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const std::uint16_t port = ports(generator);
    if (isFree(port)) return port;
  }
  throw std::runtime_error("no free loopback port between 15000 and 32000");
}

}  // namespace lockkeeper::test
