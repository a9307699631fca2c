#pragma once

#include "lockkeeper/testing/fault_proxy.h"

// What the thread of a FaultProxy does.

namespace lockkeeper::testing {

inline void FaultProxy::run() {
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

inline void FaultProxy::accept() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  ++connected_;
  open_.push_back(std::make_unique<detail::ProxyConnection>(client, upstreamPort_));
}

inline void FaultProxy::serve(detail::ProxyConnection& connection, short clientEvents, short serverEvents) {
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

// Applies the present fault to what has come in.
inline void FaultProxy::spoil(detail::ProxyConnection& connection) {
  const auto now = std::chrono::steady_clock::now();
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

inline void FaultProxy::hold(detail::ProxyConnection& connection) {
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

inline int FaultProxy::pollTimeout() const {
  const bool timed = fault_.kind == Kind::delay || fault_.kind == Kind::drip;
  for (const auto& connection : open_) {
    if (timed && !connection->replies.empty()) return 1;
  }
  return -1;
}

inline void FaultProxy::wakeUp() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
}

}  // namespace lockkeeper::testing
