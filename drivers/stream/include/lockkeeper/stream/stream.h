#pragma once

#include <Poco/Net/Context.h>
#include <Poco/Net/SocketAddress.h>
#include <Poco/Net/StreamSocket.h>
#include <poll.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lockkeeper {

/// The connection could not be made, or is lost. Internal: who knows what was sent turns it into an Error.
class StreamBroken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// PEM files.
struct TlsFiles {
  const std::string& caFile;  ///< Of the authorities to trust; empty for the system's own.
  /// Of the certificate that the server may ask for, and of its key; empty for none.
  const std::string& certFile;
  const std::string& keyFile;
};

/// For connections that verify the server. Throws ConfigError naming the file that cannot be used.
Poco::Net::Context::Ptr makeTlsContext(const TlsFiles& files);

/// One byte stream: TCP, TLS over TCP, or a Unix socket. No call blocks. One thread may send while another
/// one receives; every call may throw StreamBroken.
class Stream {
 public:
  /// Begins to connect. `tls` is null for a plain connection, and otherwise asks for a certificate of `host`.
  Stream(std::string host, const Poco::Net::SocketAddress& address, Poco::Net::Context::Ptr tls);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Goes on with connecting and, with TLS, verifies the peer. False: once more when toConnect() is there.
  /// Throws ConfigError for a certificate that is not right. Nothing else may be called before it is true.
  bool connect();
  bool connectedBelowTls() const { return phase_ != Phase::connecting; }

  /// What the system takes at once of `bytes`: how many, or nothing when it would block. After nothing, try
  /// again with the same bytes, as TLS demands.
  std::size_t send(std::string_view bytes);

  /// What is there: how many bytes, 0 when it would block.
  std::size_t receive(std::span<char> room);

  /// What connect(), send() and receive() wait for when they could do nothing. A receive() from TLS must have
  /// found nothing, since bytes that are decrypted already are invisible from outside.
  pollfd toConnect() const { return {fd_, connectEvent_, 0}; }
  pollfd toSend() const { return {fd_, writeEvent_, 0}; }
  pollfd toReceive() const { return {fd_, readEvent_, 0}; }
  bool secure() const { return secure_; }

  /// Whether something has come that nobody has read, such as the end of the connection.
  bool readable() const;

  /// Ends the connection and wakes whoever waits in it. Any thread may call it.
  void shutdown() noexcept;

 private:
  enum class Phase { connecting, handshaking, connected };

  bool finishTcp();
  bool finishTls();

  // OpenSSL allows one thread at a time in a connection. Its calls do not block here, so the wait is short.
  std::unique_lock<std::mutex> secureGuard();

  const std::string host_;
  const bool tcp_;
  const Poco::Net::Context::Ptr tls_;
  Poco::Net::StreamSocket socket_;
  int fd_ = -1;
  Phase phase_ = Phase::connecting;
  bool secure_ = false;
  std::mutex secureMutex_;
  // What the calls wait for: TLS may have to read in order to write.
  short connectEvent_ = POLLOUT;
  short writeEvent_ = POLLOUT;
  short readEvent_ = POLLIN;
};

}  // namespace lockkeeper
