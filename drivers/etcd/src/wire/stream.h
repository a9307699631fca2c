#pragma once

#include <Poco/Net/Context.h>
#include <Poco/Net/SocketAddress.h>
#include <Poco/Net/StreamSocket.h>
#include <poll.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lockkeeper/etcd/etcd_options.h"

namespace lockkeeper::etcd {

/// The connection could not be made, or is lost. Internal: who knows what was sent turns it into an Error.
class StreamBroken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The TLS settings of `options`; null when it asks for none. Throws ConfigError naming the file that cannot
/// be used.
Poco::Net::Context::Ptr makeTlsContext(const EtcdOptions& options);

/// One byte stream, TCP or TLS over TCP. No call blocks. One thread at a time; every call may throw
/// StreamBroken.
class Stream {
 public:
  /// Begins to connect. `tls` is null for a plain connection; otherwise `host` must be the certificate's.
  Stream(std::string host, const Poco::Net::SocketAddress& address, Poco::Net::Context::Ptr tls);

  /// Goes on with connecting and, with TLS, verifies the peer. False: once more when awaited() is there.
  /// Throws ConfigError for a certificate that is not right. Nothing else may be called before it is true.
  bool connect();

  /// What the system takes at once of `bytes`: how many, or nothing when it would block. After nothing, try
  /// again with the same bytes, as TLS demands.
  std::size_t send(std::string_view bytes);

  /// What is there: how many bytes, 0 when it would block.
  std::size_t receive(std::span<char> room);

  /// What the last call that could do nothing waits for.
  pollfd awaited() const { return {fd_, event_, 0}; }

  /// Whether something has come that nobody has asked for, such as the end of the connection.
  bool disturbed() const;

 private:
  enum class Phase { connecting, handshaking, connected };

  bool finishTcp();
  bool finishTls();

  const std::string host_;
  const Poco::Net::Context::Ptr tls_;
  Poco::Net::StreamSocket socket_;
  int fd_ = -1;
  Phase phase_ = Phase::connecting;
  bool secure_ = false;
  short event_ = POLLOUT;
};

}  // namespace lockkeeper::etcd
