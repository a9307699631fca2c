#include "simulation/network/network.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace lockkeeper::simulation {
namespace {

Network* present = nullptr;

int failWith(int error) {
  errno = error;
  return -1;
}

}  // namespace

Network::Network(Scheduler& scheduler) : scheduler_(scheduler) { present = this; }

Network::~Network() {
  present = nullptr;
  for (const auto& [descriptor, connection] : connections_) connection->descriptor_ = -1;
}

Network* Network::ofThisThread() noexcept { return Scheduler::ofThisThread() ? present : nullptr; }

// A real descriptor: what this program does not replace, such as fcntl(), works on it.
int Network::placeholder() { return ::open("/dev/null", O_RDWR | O_CLOEXEC); }

int Network::openSocket() {
  const int descriptor = placeholder();
  auto made = std::make_shared<Connection>(*this, scheduler_.thisProcess());
  made->descriptor_ = descriptor;
  connections_[descriptor] = std::move(made);
  return descriptor;
}

int Network::openEvent(std::uint64_t count) {
  const int descriptor = placeholder();
  events_[descriptor] = count;
  return descriptor;
}

Time Network::arrival(const Connection& connection, Time& last) {
  Time length = 20 * microsecond + static_cast<Time>(scheduler_.upTo(200 * microsecond));
  if (scheduler_.happens(faults.slow)) {
    length = static_cast<Time>(scheduler_.upTo(static_cast<std::uint64_t>(faults.slowest)));
    ++slow_;
  }
  Time at = scheduler_.now() + length;
  const auto held = held_.find({connection.process_, connection.address_.first});
  if (held != held_.end()) at = std::max(at, held->second);
  last = std::max(at, last + 1);
  return last;
}

bool Network::tears() { return scheduler_.happens(faults.torn); }

int Network::connect(int descriptor, const sockaddr_in& address) {
  const std::shared_ptr<Connection> connection = connections_.at(descriptor);
  connection->state_ = Connection::State::connecting;
  connection->address_ = {ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
  scheduler_.at(arrival(*connection, connection->lastThere_), [this, connection] {
    if (connection->state_ != Connection::State::connecting) return;
    const auto found = servers_.find(connection->address_);
    connection->session_ = found == servers_.end() ? nullptr : found->second->accept(*connection);
    connection->state_ = connection->session_ ? Connection::State::open : Connection::State::refused;
    changed(connection->descriptor_);
  });
  return failWith(EINPROGRESS);
}

int Network::socketError(int descriptor) const {
  switch (at(descriptor).state_) {
    case Connection::State::refused:
      return ECONNREFUSED;
    case Connection::State::reset:
      return ECONNRESET;
    default:
      return 0;
  }
}

void Network::reset(Connection& connection) {
  ++torn_;
  connection.session_ = nullptr;
  connection.state_ = Connection::State::reset;
  changed(connection.descriptor_);
}

void Network::resetAll(std::uint32_t ip, std::uint16_t port) {
  for (const auto& [descriptor, connection] : connections_) {
    const bool itsOwn = connection->address_ == std::pair(ip, port);
    if (itsOwn && connection->state_ == Connection::State::open) reset(*connection);
  }
}

ssize_t Network::send(int descriptor, std::string_view bytes) {
  const std::shared_ptr<Connection> connection = connections_.at(descriptor);
  if (connection->state_ == Connection::State::reset) return failWith(ECONNRESET);
  if (connection->state_ != Connection::State::open) return failWith(EPIPE);
  const bool torn = tears();
  std::string arrives(bytes.substr(0, torn ? scheduler_.upTo(bytes.size()) : bytes.size()));
  scheduler_.at(arrival(*connection, connection->lastThere_),
                [this, connection, torn, arrives = std::move(arrives)] {
                  if (!connection->session_) return;
                  if (!arrives.empty()) connection->session_->receive(arrives);
                  if (torn && connection->session_) reset(*connection);
                });
  return static_cast<ssize_t>(bytes.size());
}

void Connection::reply(std::string_view bytes) {
  const bool torn = network_.tears();
  std::string arrives(bytes.substr(0, torn ? network_.scheduler_.upTo(bytes.size()) : bytes.size()));
  network_.scheduler_.at(network_.arrival(*this, lastBack_),
                         [this, self = shared_from_this(), torn, arrives = std::move(arrives)] {
                           if (state_ != State::open) return;
                           incoming_ += arrives;
                           if (torn) {
                             network_.reset(*this);
                           } else {
                             network_.changed(descriptor_);
                           }
                         });
}

void Connection::close() {
  session_ = nullptr;
  network_.scheduler_.at(network_.arrival(*this, lastBack_), [this, self = shared_from_this()] {
    ended_ = true;
    network_.changed(descriptor_);
  });
}

ssize_t Network::receive(int descriptor, char* out, std::size_t length, bool keep) {
  Connection& connection = at(descriptor);
  if (!connection.incoming_.empty()) {
    // As the kernel may: fewer bytes than there are.
    const std::size_t there = std::min(length, connection.incoming_.size());
    const std::size_t taken = scheduler_.happens(0.02) ? 1 + scheduler_.upTo(there - 1) : there;
    std::memcpy(out, connection.incoming_.data(), taken);
    if (!keep) connection.incoming_.erase(0, taken);
    return static_cast<ssize_t>(taken);
  }
  if (connection.state_ == Connection::State::reset) return failWith(ECONNRESET);
  if (connection.ended_) return 0;
  return failWith(EAGAIN);
}

ssize_t Network::readEvent(int descriptor, std::uint64_t& count) {
  std::uint64_t& kept = events_.at(descriptor);
  if (kept == 0) return failWith(EAGAIN);
  count = std::exchange(kept, 0);
  return sizeof count;
}

void Network::writeEvent(int descriptor, std::uint64_t count) {
  events_.at(descriptor) += count;
  changed(descriptor);
}

void Network::shutdown(int descriptor) {
  Connection& connection = at(descriptor);
  connection.session_ = nullptr;
  connection.ended_ = true;
  changed(descriptor);
}

void Network::forget(int descriptor) {
  if (const auto found = connections_.find(descriptor); found != connections_.end()) {
    found->second->descriptor_ = -1;
    found->second->session_ = nullptr;
    found->second->state_ = Connection::State::reset;
    connections_.erase(found);
  }
  events_.erase(descriptor);
}

short Network::readiness(const pollfd& asked) const {
  int found = 0;
  if (const auto event = events_.find(asked.fd); event != events_.end()) {
    found = (event->second > 0 ? POLLIN : 0) | POLLOUT;
  } else if (const auto each = connections_.find(asked.fd); each != connections_.end()) {
    const Connection& connection = *each->second;
    switch (connection.state_) {
      case Connection::State::idle:
        found = POLLOUT | POLLHUP;
        break;
      case Connection::State::connecting:
        break;
      case Connection::State::open:
        found = POLLOUT | (connection.incoming_.empty() && !connection.ended_ ? 0 : POLLIN);
        break;
      case Connection::State::refused:
      case Connection::State::reset:
        found = POLLIN | POLLOUT | POLLERR | POLLHUP;
        break;
    }
  } else {
    return asked.fd < 0 ? short{0} : short{POLLNVAL};
  }
  return static_cast<short>(found & (asked.events | POLLERR | POLLHUP));
}

void Network::changed(int descriptor) {
  if (descriptor < 0) return;
  for (Poller* const each : pollers_) {
    const bool asks = std::any_of(each->descriptors, each->descriptors + each->count,
                                  [&](const pollfd& polled) { return polled.fd == descriptor; });
    if (asks) scheduler_.wake(each, std::numeric_limits<std::size_t>::max());
  }
}

int Network::poll(pollfd* descriptors, std::size_t count, Time until) {
  for (;;) {
    int ready = 0;
    for (std::size_t i = 0; i < count; ++i) {
      descriptors[i].revents = readiness(descriptors[i]);
      ready += descriptors[i].revents != 0 ? 1 : 0;
    }
    if (ready > 0 || until <= scheduler_.now()) return ready;
    Poller self{descriptors, count};
    pollers_.push_back(&self);
    scheduler_.wait(&self, until);
    pollers_.erase(std::find(pollers_.begin(), pollers_.end(), &self));
  }
}

}  // namespace lockkeeper::simulation
