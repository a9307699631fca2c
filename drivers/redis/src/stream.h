#pragma once

#include <Poco/Net/Context.h>
#include <Poco/Net/StreamSocket.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lockkeeper/clock.h"

namespace lockkeeper::redis {

struct RedisOptions;

/// The connection could not be made, or is lost. Internal: who knows what was sent turns it into an Error.
class StreamBroken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One connected byte stream: TCP, TLS over TCP, or a Unix socket. It never blocks but in wait(), so that a
/// deadline holds whatever the peer does. One thread may send while another one receives; every call may
/// throw StreamBroken.
class Stream {
 public:
  /// Connects and, with TLS, verifies the peer. Ends by `deadline`, except that the resolver of the C library
  /// has its own time limits: they apply where the host is a name. `tls` is null for a plain connection.
  Stream(const RedisOptions& options, Poco::Net::Context::Ptr tls, Clock& clock, Instant deadline);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// What the system takes at once of `bytes`: how many, or nothing when it would block. After nothing, try
  /// again with the same bytes, as TLS demands.
  std::size_t send(std::string_view bytes);

  /// What is there: how many bytes, 0 when it would block.
  std::size_t receive(std::span<char> room);

  /// Sends all of `bytes`. False: `deadline` came first.
  bool sendAll(std::string_view bytes, Clock& clock, Instant deadline);

  /// Waits until receive() may find something. False: `deadline` came first.
  bool waitReadable(Clock& clock, Instant deadline) { return wait(readEvent_, clock, deadline); }

  /// True when there is something to receive, be it the end, without waiting for it.
  bool readable();

  /// Ends the connection and wakes whoever waits in it. Any thread may call it.
  void shutdown() noexcept;

 private:
  void connect(const RedisOptions& options, Clock& clock, Instant deadline);
  void secure(const RedisOptions& options, Poco::Net::Context::Ptr tls, Clock& clock, Instant deadline);
  bool wait(short event, Clock& clock, Instant deadline);

  // OpenSSL allows one thread at a time in a connection. Its calls do not block here, so the wait is short.
  std::unique_lock<std::mutex> secureGuard();

  Poco::Net::StreamSocket socket_;
  int fd_ = -1;
  bool secure_ = false;
  std::mutex secureMutex_;
  // What send() and receive() wait for: TLS may have to read in order to write.
  short writeEvent_;
  short readEvent_;
};

}  // namespace lockkeeper::redis
