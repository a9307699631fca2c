#include "fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "proxy_connection.h"

namespace lockkeeper::test {
namespace {

using Kind = ProxyFault::Kind;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t floodBytes = 65536;

short interest(bool read, bool write) {
  return static_cast<short>((read ? POLLIN : 0) | (write ? POLLOUT : 0));
}

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

FaultProxy::FaultProxy(std::uint16_t upstreamPort) : upstreamPort_(upstreamPort) {
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

FaultProxy::~FaultProxy() {
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

void FaultProxy::leadTo(std::uint16_t upstreamPort) {
  const std::lock_guard guard(mutex_);
  upstreamPort_ = upstreamPort;
}

void FaultProxy::set(ProxyFault fault) {
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

void FaultProxy::endConnections(Ending ending) {
  {
    std::lock_guard guard(mutex_);
    for (const auto& connection : open_) connection->end(ending);
  }
  wakeUp();
}

void FaultProxy::endHeldConnections(Ending ending) {
  {
    std::lock_guard guard(mutex_);
    for (const auto& connection : open_) {
      if (connection->isHeld) connection->end(ending);
    }
  }
  wakeUp();
}

bool FaultProxy::deliverHeld() {
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

int FaultProxy::takeHeldServer() {
  const std::lock_guard guard(mutex_);
  for (const auto& connection : open_) {
    if (const int server = connection->takeHeldServer(); server >= 0) return server;
  }
  return std::exchange(heldServer_, -1);
}

std::size_t FaultProxy::connections() const {
  std::lock_guard guard(mutex_);
  return connected_;
}

std::size_t FaultProxy::requests() const {
  std::lock_guard guard(mutex_);
  return requests_;
}

std::size_t FaultProxy::replyBytes() const {
  std::lock_guard guard(mutex_);
  return replyBytes_;
}

std::size_t FaultProxy::fired() const {
  std::lock_guard guard(mutex_);
  return fired_;
}

std::string FaultProxy::held() const {
  std::lock_guard guard(mutex_);
  return held_;
}

void FaultProxy::run() {
  std::unique_lock guard(mutex_);
  while (!stopping_) {
    std::erase_if(open_, [this](const auto& connection) {
      if (!connection->ended()) return false;
      if (const int server = connection->takeHeldServer(); server >= 0) heldServer_ = server;
      return true;
    });
    std::vector<pollfd> events{{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& connection : open_) {
      const bool mayRead =
          connection->outgoing.size() < floodBytes && connection->replies.size() < floodBytes;
      const bool flooded = fault_.kind == Kind::flood && connection->hasSent;
      events.push_back({connection->client(), interest(true, flooded || !connection->outgoing.empty()), 0});
      events.push_back({connection->server(), interest(mayRead, connection->wantsServer()), 0});
    }
    const int timeout = pollTimeout();
    guard.unlock();
    ::poll(events.data(), events.size(), timeout);
    guard.lock();

    std::uint64_t wakeUps = 0;
    (void)!::read(wake_, &wakeUps, sizeof wakeUps);
    // Nobody else adds to or removes from open_, though endConnections() may have ended some meanwhile.
    for (std::size_t i = 0; i < open_.size(); ++i) {
      serve(*open_[i], events[2 + 2 * i].revents, events[3 + 2 * i].revents);
    }
    if (events[1].revents != 0) accept();
  }
  open_.clear();
}

void FaultProxy::accept() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  ++connected_;
  open_.push_back(std::make_unique<ProxyConnection>(client, upstreamPort_));
}

void FaultProxy::serve(ProxyConnection& connection, short clientEvents, short serverEvents) {
  if (connection.ended()) return;
  if ((serverEvents & (POLLIN | POLLHUP | POLLERR)) != 0) connection.readServer();
  if ((clientEvents & (POLLIN | POLLHUP | POLLERR)) != 0) connection.readClient();
  if (connection.ended()) return;
  if (!connection.requests.empty() && connection.wasAnswered) {
    connection.wasAnswered = false;
    ++requests_;
  }
  spoil(connection);
  if (connection.ended()) return;
  connection.write();
  connection.endIfDrained();
}

/// Applies the present fault to what has come in.
void FaultProxy::spoil(ProxyConnection& connection) {
  const auto now = SteadyClock::now();
  if (connection.isReplaced) {
    connection.replies.clear();
    connection.isReplaced = connection.requests.empty();
  }
  const bool waiting = !connection.replies.empty();
  const auto pass = [&](std::size_t count) {
    connection.pass(count);
    if (count > 0) connection.wasAnswered = true;
    replyBytes_ += count;
  };
  switch (fault_.kind) {
    case Kind::none:
      pass(connection.replies.size());
      break;
    case Kind::cut:
      if (connection.replies.size() > fault_.bytes) {
        pass(fault_.bytes);
        connection.write();
        connection.end(fault_.ending);
        fault_ = {};
        ++fired_;
      } else {
        fault_.bytes -= connection.replies.size();
        pass(connection.replies.size());
      }
      break;
    case Kind::delay:
    case Kind::drip:
      if (!waiting) break;
      if (!connection.notBefore) {
        connection.notBefore = now + fault_.pause;
        ++fired_;
      } else if (now >= *connection.notBefore) {
        pass(fault_.kind == Kind::drip ? 1 : connection.replies.size());
        connection.notBefore.reset();
      }
      break;
    case Kind::blackhole:
      if (waiting || !connection.requests.empty()) ++fired_;
      connection.replies.clear();
      connection.requests.clear();
      break;
    case Kind::dropReplies: {
      const std::size_t first = std::min(fault_.bytes, connection.replies.size());
      fault_.bytes -= first;
      pass(first);
      if (!connection.replies.empty()) ++fired_;
      connection.replies.clear();
      break;
    }
    case Kind::replace:
      if (!waiting) break;
      if (requests_ <= fault_.requests && fault_.requests > 0) {
        pass(connection.replies.size());
        break;
      }
      connection.replies = fault_.text;
      connection.isReplaced = true;
      pass(connection.replies.size());
      fault_ = {};
      ++fired_;
      break;
    case Kind::hold:
      pass(connection.replies.size());
      hold(connection);
      break;
    case Kind::step:
      pass(connection.replies.size());
      if (fired_ > 0 || connection.requests.empty() || requests_ <= fault_.requests ||
          connection.requests.find(fault_.text) == std::string::npos) {
        break;
      }
      connection.isStopped = true;
      ++fired_;
      break;
    case Kind::flood:
      connection.replies.clear();
      if (!connection.hasSent) break;
      while (connection.outgoing.size() < floodBytes) connection.outgoing += fault_.text;
      ++fired_;
      break;
  }
}

void FaultProxy::hold(ProxyConnection& connection) {
  if (fired_ == 0 && connection.requests.find(fault_.text) != std::string::npos) {
    if (fault_.requests > 0) {
      --fault_.requests;
      return;
    }
    connection.isHeld = true;
    ++fired_;
  }
  if (!connection.isHeld) return;
  held_ += connection.requests;
  connection.requests.clear();
}

int FaultProxy::pollTimeout() const {
  const bool timed = fault_.kind == Kind::delay || fault_.kind == Kind::drip;
  for (const auto& connection : open_) {
    if (timed && !connection->replies.empty()) return 1;
  }
  return -1;
}

void FaultProxy::wakeUp() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
}

}  // namespace lockkeeper::test
