#include "simulation/network/network.h"

#include <errno.h>

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

Network::Network(Scheduler& scheduler, std::uint64_t seed) : scheduler_(scheduler), chance_(seed, 3) {
  present = this;
}

Network::~Network() {
  present = nullptr;
  for (const Descriptor& each : descriptors_) {
    if (!each.connection) continue;
    each.connection->descriptor_ = -1;
    each.connection->session_ = nullptr;
  }
  for (const std::weak_ptr<Connection>& each : leaving_) {
    if (const std::shared_ptr<Connection> connection = each.lock()) connection->session_ = nullptr;
  }
}

Network* Network::ofThisThread() noexcept { return Scheduler::ofThisThread() ? present : nullptr; }

int Network::open(Descriptor descriptor) {
  descriptors_.push_back(std::move(descriptor));
  return firstDescriptor + static_cast<int>(descriptors_.size()) - 1;
}

int Network::openSocket() {
  auto made = std::make_shared<Connection>(*this, scheduler_.thisProcess());
  Connection& connection = *made;
  return connection.descriptor_ = open({std::move(made), {}});
}

int Network::openEvent(std::uint64_t count) { return open({nullptr, count}); }

Time Network::arrival(const Connection& connection, Time& last, double slow) {
  Time length = 20 * microsecond + static_cast<Time>(chance_.upTo(200 * microsecond));
  const auto longer = static_cast<Time>(chance_.upTo(static_cast<std::uint64_t>(faults.slowest)));
  if (scheduler_.happens(Event::slow, slow)) {
    length = longer;
    ++slow_;
    scheduler_.trace("network", [&] {
      return "bytes of " + scheduler_.process(connection.process_).name + " take " +
             std::to_string(length / millisecond) + " ms";
    });
  }
  Time at = scheduler_.now() + length;
  const auto held = held_.find({connection.process_, connection.address_.first});
  if (held != held_.end()) at = std::max(at, held->second);
  last = std::max(at, last + 1);
  return last;
}

std::optional<std::size_t> Network::tornAfter(std::size_t length) {
  const std::size_t some = chance_.upTo(length);
  return scheduler_.happens(Event::torn, faults.torn) ? std::optional(some) : std::nullopt;
}

int Network::connect(int descriptor, const sockaddr_in& address) {
  const std::shared_ptr<Connection> connection = at(descriptor).connection;
  connection->state_ = Connection::State::connecting;
  connection->address_ = {ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
  scheduler_.at(
      arrival(*connection, connection->lastThere_, faults.inTime ? 0 : faults.slow), [this, connection] {
        if (connection->state_ != Connection::State::connecting) return;
        const auto found = servers_.find(connection->address_);
        connection->session_ = found == servers_.end() ? nullptr : found->second->accept(*connection);
        connection->state_ = connection->session_ ? Connection::State::open : Connection::State::refused;
        changed(connection->descriptor_);
      });
  return failWith(EINPROGRESS);
}

int Network::socketError(int descriptor) const {
  switch (at(descriptor).connection->state_) {
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
  scheduler_.trace("network", [&] {
    return "a connection of " + scheduler_.process(connection.process_).name + " is reset";
  });
  connection.session_ = nullptr;
  connection.state_ = Connection::State::reset;
  changed(connection.descriptor_);
}

void Network::endAll(std::uint32_t ip, std::uint16_t port, bool told) {
  for (const std::weak_ptr<Connection>& each : leaving_) {
    const std::shared_ptr<Connection> connection = each.lock();
    if (connection && connection->address_ == std::pair(ip, port)) connection->session_ = nullptr;
  }
  leaving_.clear();
  for (const Descriptor& each : descriptors_) {
    const bool itsOwn = each.connection && each.connection->address_ == std::pair(ip, port);
    if (!itsOwn || each.connection->state_ != Connection::State::open) continue;
    each.connection->session_ = nullptr;
    each.connection->forgotten_ = true;
    if (told) reset(*each.connection);
  }
}

ssize_t Network::send(int descriptor, std::string_view bytes) {
  const std::shared_ptr<Connection> connection = at(descriptor).connection;
  if (connection->state_ == Connection::State::reset) return failWith(ECONNRESET);
  if (connection->state_ != Connection::State::open) return failWith(EPIPE);
  const std::optional<std::size_t> some = tornAfter(bytes.size());
  const bool torn = some.has_value();
  std::string arrives(bytes.substr(0, some.value_or(bytes.size())));
  scheduler_.at(arrival(*connection, connection->lastThere_, faults.inTime ? 0 : faults.slow),
                [this, connection, torn, arrives = std::move(arrives)] {
                  const bool isOpen = connection->state_ == Connection::State::open;
                  if (connection->forgotten_ && isOpen) return reset(*connection);
                  if (!connection->session_) return;
                  if (!arrives.empty()) connection->session_->receive(arrives);
                  if (torn && connection->session_) reset(*connection);
                });
  return static_cast<ssize_t>(bytes.size());
}

void Connection::reply(std::string_view bytes) {
  const std::optional<std::size_t> some = network_.tornAfter(bytes.size());
  const bool torn = some.has_value();
  std::string arrives(bytes.substr(0, some.value_or(bytes.size())));
  network_.scheduler_.at(network_.arrival(*this, lastBack_, network_.faults.slow),
                         [this, self = shared_from_this(), torn, arrives = std::move(arrives)] {
                           if (state_ != State::open) return;
                           incoming_ += arrives;
                           network_.hasReply(process_);
                           if (torn) {
                             network_.reset(*this);
                           } else {
                             network_.changed(descriptor_);
                           }
                         });
}

void Connection::close() {
  session_ = nullptr;
  network_.scheduler_.at(network_.arrival(*this, lastBack_, network_.faults.slow),
                         [this, self = shared_from_this()] {
                           ended_ = true;
                           network_.changed(descriptor_);
                         });
}

ssize_t Network::receive(int descriptor, char* out, std::size_t length, bool keep) {
  Connection& connection = *at(descriptor).connection;
  if (!connection.incoming_.empty()) {
    // As the kernel may: fewer bytes than there are.
    const std::size_t there = std::min(length, connection.incoming_.size());
    const std::size_t some = 1 + chance_.upTo(there - 1);
    const std::size_t taken = scheduler_.happens(Event::shortRead, 0.02) ? some : there;
    std::memcpy(out, connection.incoming_.data(), taken);
    if (!keep) connection.incoming_.erase(0, taken);
    return static_cast<ssize_t>(taken);
  }
  if (connection.state_ == Connection::State::reset) return failWith(ECONNRESET);
  if (connection.ended_) return 0;
  return failWith(EAGAIN);
}

ssize_t Network::readEvent(int descriptor, std::uint64_t& count) {
  std::uint64_t& kept = *at(descriptor).event;
  if (kept == 0) return failWith(EAGAIN);
  count = std::exchange(kept, 0);
  return sizeof count;
}

void Network::writeEvent(int descriptor, std::uint64_t count) {
  *at(descriptor).event += count;
  changed(descriptor);
}

void Network::shutdown(int descriptor) {
  leave(at(descriptor).connection);
  changed(descriptor);
}

// What was sent arrives, and then the end.
void Network::leave(const std::shared_ptr<Connection>& connection) {
  if (!connection->session_ || std::exchange(connection->ended_, true)) return;
  leaving_.push_back(connection);
  scheduler_.at(arrival(*connection, connection->lastThere_, faults.inTime ? 0 : faults.slow),
                [connection] { connection->session_ = nullptr; });
}

void Network::forget(int descriptor) {
  if (const std::shared_ptr<Connection> connection = std::move(at(descriptor).connection)) {
    leave(connection);
    connection->descriptor_ = -1;
    connection->state_ = Connection::State::reset;
  }
  at(descriptor) = {};
}

short Network::readiness(const pollfd& asked) const {
  if (asked.fd < 0) return 0;
  if (!has(asked.fd)) return POLLNVAL;
  int found = 0;
  if (isEvent(asked.fd)) {
    found = (*at(asked.fd).event > 0 ? POLLIN : 0) | POLLOUT;
  } else {
    const Connection& connection = *at(asked.fd).connection;
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

void Network::hasReply(int process) {
  if (const auto waiting = atNextReply_.extract(process)) waiting.mapped()();
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
