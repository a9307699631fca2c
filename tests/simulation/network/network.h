#pragma once

#include <netinet/in.h>
#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulation/machine/scheduler.h"

namespace lockkeeper::simulation {

class Connection;

/// The server's end of a connection.
class Session {
 public:
  virtual ~Session() = default;
  /// Bytes have come from the client.
  virtual void receive(std::string_view bytes) = 0;
};

/// A program that listens at an address.
class Server {
 public:
  virtual ~Server() = default;
  /// Null when it refuses.
  virtual std::unique_ptr<Session> accept(Connection& connection) = 0;
};

/// How often what goes wrong, by itself, on the way of one piece of bytes.
struct LinkFaults {
  double slow = 0;  ///< It takes up to `slowest`.
  Time slowest = 3 * second;
  bool inTime = false;  ///< Not on the way to the server: what a client gives up has arrived, or never does.
  double torn = 0;      ///< The connection is reset after some of it.
};

/// A connection as both ends see it. The bytes of one direction come in their order, later or never.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(class Network& network, int process) : network_(network), process_(process) {}

  /// By the server's end.
  void reply(std::string_view bytes);
  /// By the server's end: nothing more comes. What is on its way arrives.
  void close();
  int process() const noexcept { return process_; }

 private:
  friend class Network;
  enum class State { idle, connecting, open, refused, reset };

  Network& network_;
  const int process_;
  int descriptor_ = -1;  // -1: the client has closed it
  State state_ = State::idle;
  std::pair<std::uint32_t, std::uint16_t> address_;
  std::unique_ptr<Session> session_;
  std::string incoming_;
  bool ended_ = false;      // after `incoming_` there is no more
  bool forgotten_ = false;  // by a server that has started anew since
  Time lastThere_ = 0;
  Time lastBack_ = 0;
};

/// The network of a run, and the descriptors of its processes (interpose_sockets.cpp).
class Network {
 public:
  /// One at a time is the network of a scheduler's threads.
  Network(Scheduler& scheduler, std::uint64_t seed);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network();
  static Network* ofThisThread() noexcept;

  void listen(std::uint32_t ip, std::uint16_t port, Server& server) { servers_[{ip, port}] = &server; }

  LinkFaults faults;

  /// Bytes between a process and an address are on their way until then, at least.
  void hold(int process, std::uint32_t ip, Time until) { held_[{process, ip}] = until; }
  /// Calls `event` when the next bytes have come to the process. It must not block.
  void atNextReply(int process, std::function<void()> event) { atNextReply_[process] = std::move(event); }
  /// Ends the connections of an address whose server dies. A computer that loses its power tells nobody: who
  /// is connected hears of it when he sends.
  void endAll(std::uint32_t ip, std::uint16_t port, bool told);
  /// How many connections were torn or reset, and how many pieces of bytes were slow.
  std::uint64_t torn() const noexcept { return torn_; }
  std::uint64_t slow() const noexcept { return slow_; }

  /// @{ The system calls, on descriptors of this network. They return as those do, with errno.
  bool has(int descriptor) const noexcept {
    return descriptor >= firstDescriptor &&
           descriptor - firstDescriptor < static_cast<int>(descriptors_.size()) &&
           (at(descriptor).connection || at(descriptor).event);
  }
  int openSocket();
  int openEvent(std::uint64_t count);
  int connect(int descriptor, const sockaddr_in& address);
  int socketError(int descriptor) const;
  ssize_t send(int descriptor, std::string_view bytes);
  ssize_t receive(int descriptor, char* out, std::size_t length, bool keep);
  ssize_t readEvent(int descriptor, std::uint64_t& count);
  void writeEvent(int descriptor, std::uint64_t count);
  bool isEvent(int descriptor) const noexcept { return at(descriptor).event.has_value(); }
  void shutdown(int descriptor);
  void forget(int descriptor);
  int poll(pollfd* descriptors, std::size_t count, Time until);
  /// @}

 private:
  friend class Connection;
  struct Poller {
    const pollfd* descriptors;
    std::size_t count;
  };

  // Far above those that the kernel gives.
  static constexpr int firstDescriptor = 1 << 20;
  // Neither of them: closed.
  struct Descriptor {
    std::shared_ptr<Connection> connection;
    std::optional<std::uint64_t> event;
  };

  int open(Descriptor descriptor);
  short readiness(const pollfd& asked) const;
  void changed(int descriptor);
  void hasReply(int process);
  void reset(Connection& connection);
  void leave(const std::shared_ptr<Connection>& connection);
  Time arrival(const Connection& connection, Time& last, double slow);
  /// How much of the bytes arrives before the connection is reset; nothing if it stays.
  std::optional<std::size_t> tornAfter(std::size_t length);
  const Descriptor& at(int descriptor) const noexcept {
    return descriptors_[static_cast<std::size_t>(descriptor - firstDescriptor)];
  }
  Descriptor& at(int descriptor) noexcept {
    return descriptors_[static_cast<std::size_t>(descriptor - firstDescriptor)];
  }

  Scheduler& scheduler_;
  Chance chance_;
  std::map<std::pair<std::uint32_t, std::uint16_t>, Server*> servers_;
  std::vector<Descriptor> descriptors_;
  std::map<std::pair<int, std::uint32_t>, Time> held_;
  std::map<int, std::function<void()>> atNextReply_;
  std::vector<Poller*> pollers_;
  std::vector<std::weak_ptr<Connection>> leaving_;  // that the client has closed
  std::uint64_t torn_ = 0;
  std::uint64_t slow_ = 0;
};

}  // namespace lockkeeper::simulation
