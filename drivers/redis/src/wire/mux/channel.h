#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "lockkeeper/error.h"
#include "wire/dial/connect_backoff.h"
#include "wire/dial/connector.h"
#include "wire/mux/connection.h"
#include "wire/mux/waking_lock.h"
#include "wire/protocol/request.h"

namespace lockkeeper::redis {

/// One connection that all threads share. There is no thread behind it: of the callers that wait, one writes
/// what all of them have added (many commands in one write) and one reads and hands out the replies, in
/// order. When it has its own replies it passes the role on. Reconnects by itself; never sends a request
/// twice.
///
/// Anything in doubt (a broken stream, a malformed reply, a write that was cut, a reply that is late by the
/// I/O timeout) ends the connection: what was handed to the socket by then is OutcomeUnknown, the rest
/// StoreUnavailable.
class Channel {
 public:
  explicit Channel(Connector& connector);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  /// Sends, connecting first if need be. Throws StoreUnavailable, ConfigError or ProtocolError when there is
  /// no connection: then nothing was sent. Faults of sending show in await().
  void submit(Request& request, Instant deadline);

  /// Waits for all replies. Throws StoreUnavailable, OutcomeUnknown or ProtocolError. Error replies are
  /// replies.
  void await(Request& request, Instant deadline);

  void execute(Request& request, Instant deadline) {
    submit(request, deadline);
    await(request, deadline);
  }

  /// Ends the connection, since the server behind it is not what we need; `why` is for whoever else waits.
  void disconnect(const std::string& why);

 private:
  friend class Request;
  using Lock = WakingLock;

  void ensureConnected(Lock& lock, Instant deadline);
  void connect(Lock& lock, Instant deadline);
  void dropIfStale(Lock& lock);
  void write(Lock& lock, Connection& connection, const Request& request, Instant deadline);
  static bool wakeWriter(Lock& lock, Connection& connection);
  void read(Lock& lock, Connection& connection, const Request& request, Instant deadline);
  void deliver(Lock& lock, Connection& connection);
  bool late(const Connection& connection) const;
  void drop(Lock& lock, Connection& connection, ErrorCode code, const std::string& why);
  void giveUp(Connection& connection, Request& request);
  void passOn(Lock& lock, Connection& connection, const Request& request);
  void abandon(Request& request);

  Connector& connector_;
  Clock& clock_;
  const std::chrono::milliseconds ioTimeout_;

  std::mutex mutex_;
  WakerPool wakers_;
  std::shared_ptr<Connection> connection_;  // shared with those that are in a system call on it

  bool connecting_ = false;
  std::condition_variable connected_;
  ConnectBackoff backoff_;
};

}  // namespace lockkeeper::redis
