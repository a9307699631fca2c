// The C library's sockets, events and poll(), for the threads of a simulation that has a network.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "simulation/machine/real_calls.h"
#include "simulation/machine/scheduler.h"
#include "simulation/network/network.h"

using lockkeeper::simulation::Network;
using lockkeeper::simulation::Scheduler;

namespace {

// The network to which `descriptor` belongs. Another thread may run before the call is made.
Network* networkOf(int descriptor) {
  Network* const network = Network::ofThisThread();
  if (!network || !network->has(descriptor)) return nullptr;
  Scheduler::ofThisThread()->giveWay("before it uses a socket");
  return network->has(descriptor) ? network : nullptr;
}

}  // namespace

extern "C" {

int socket(int family, int type, int protocol) noexcept {
  LOCKKEEPER_REAL(socket);
  Network* const network = Network::ofThisThread();
  return network && family == AF_INET ? network->openSocket() : real(family, type, protocol);
}

int eventfd(unsigned count, int flags) noexcept {
  LOCKKEEPER_REAL(eventfd);
  Network* const network = Network::ofThisThread();
  return network ? network->openEvent(count) : real(count, flags);
}

int connect(int descriptor, const sockaddr* address, socklen_t length) {
  LOCKKEEPER_REAL(connect);
  Network* const network = networkOf(descriptor);
  if (!network) return real(descriptor, address, length);
  sockaddr_in asked{};
  memcpy(&asked, address, sizeof asked);
  return network->connect(descriptor, asked);
}

int getsockopt(int descriptor, int level, int option, void* value, socklen_t* length) noexcept {
  LOCKKEEPER_REAL(getsockopt);
  Network* const network = networkOf(descriptor);
  if (!network) return real(descriptor, level, option, value, length);
  const int answer = level == SOL_SOCKET && option == SO_ERROR ? network->socketError(descriptor) : 0;
  memcpy(value, &answer, sizeof answer);
  return 0;
}

int setsockopt(int descriptor, int level, int option, const void* value, socklen_t length) noexcept {
  LOCKKEEPER_REAL(setsockopt);
  return networkOf(descriptor) ? 0 : real(descriptor, level, option, value, length);
}

ssize_t send(int descriptor, const void* bytes, size_t length, int flags) {
  LOCKKEEPER_REAL(send);
  Network* const network = networkOf(descriptor);
  return network ? network->send(descriptor, {static_cast<const char*>(bytes), length})
                 : real(descriptor, bytes, length, flags);
}

ssize_t recv(int descriptor, void* out, size_t length, int flags) {
  LOCKKEEPER_REAL(recv);
  Network* const network = networkOf(descriptor);
  return network ? network->receive(descriptor, static_cast<char*>(out), length, (flags & MSG_PEEK) != 0)
                 : real(descriptor, out, length, flags);
}

ssize_t read(int descriptor, void* out, size_t length) {
  LOCKKEEPER_REAL(read);
  Network* const network = networkOf(descriptor);
  if (!network) return real(descriptor, out, length);
  if (!network->isEvent(descriptor))
    return network->receive(descriptor, static_cast<char*>(out), length, false);
  uint64_t count = 0;
  const ssize_t result = network->readEvent(descriptor, count);
  memcpy(out, &count, sizeof count);
  return result;
}

ssize_t write(int descriptor, const void* bytes, size_t length) {
  LOCKKEEPER_REAL(write);
  Network* const network = networkOf(descriptor);
  if (!network) return real(descriptor, bytes, length);
  if (!network->isEvent(descriptor))
    return network->send(descriptor, {static_cast<const char*>(bytes), length});
  uint64_t count = 0;
  memcpy(&count, bytes, sizeof count);
  network->writeEvent(descriptor, count);
  return static_cast<ssize_t>(length);
}

int shutdown(int descriptor, int how) noexcept {
  LOCKKEEPER_REAL(shutdown);
  Network* const network = networkOf(descriptor);
  if (!network) return real(descriptor, how);
  network->shutdown(descriptor);
  return 0;
}

int close(int descriptor) {
  LOCKKEEPER_REAL(close);
  Network* const network = networkOf(descriptor);
  if (!network) return real(descriptor);
  network->forget(descriptor);
  return 0;
}

// Sets flags: all descriptors of the network are non-blocking already.
int fcntl(int descriptor, int command, ...) {
  LOCKKEEPER_REAL(fcntl);
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return networkOf(descriptor) ? 0 : real(descriptor, command, argument);
}

int poll(pollfd* descriptors, nfds_t count, int timeout) {
  LOCKKEEPER_REAL(poll);
  Network* const network = Network::ofThisThread();
  if (!network) return real(descriptors, count, timeout);
  Scheduler& scheduler = *Scheduler::ofThisThread();
  scheduler.giveWay("before it polls");
  const auto until = timeout < 0 ? lockkeeper::simulation::never
                                 : scheduler.after(timeout * lockkeeper::simulation::millisecond);
  return network->poll(descriptors, count, timeout == 0 ? scheduler.now() : until);
}

}  // extern "C"
