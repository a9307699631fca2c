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

/// The connection could not be made, or is lost. Internal: the caller, who knows what was sent, turns it into
/// an Error.
class StreamBroken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// PEM files.
struct TlsFiles {
  const std::string& caFile;  ///< The authorities to trust; empty: the system's.
  /// The client certificate, for servers that ask for one, and its key; empty: none.
  const std::string& certFile;
  const std::string& keyFile;
};

/// For connections that verify the server. Throws ConfigError that names a file that cannot be used.
Poco::Net::Context::Ptr makeTlsContext(const TlsFiles& files);

/// A byte stream: TCP, TLS over TCP, or a Unix socket. No call blocks. One thread may send while another one
/// receives. Every call may throw StreamBroken.
class Stream {
 public:
  /// Begins to connect. `tls` is null for a plain connection; otherwise the server's certificate must be for
  /// `host`.
  Stream(std::string host, const Poco::Net::SocketAddress& address, Poco::Net::Context::Ptr tls);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Continues to connect and, with TLS, verifies the peer. Returns false if it must be called again when
  /// toConnect() is ready; no other function may be called before it has returned true. Throws ConfigError
  /// for a wrong certificate.
  bool connect();
  bool connectedBelowTls() const { return phase_ != Phase::connecting; }

  /// Sends as much of `bytes` as the system takes without blocking. Returns how many bytes that are; 0 if it
  /// would block. After 0, call it again with the same bytes, as TLS demands.
  std::size_t send(std::string_view bytes);

  /// Reads what has arrived. Returns how many bytes that are; 0 if it would block.
  std::size_t receive(std::span<char> room);

  /// What to poll for before the next connect(), send() or receive(), after one that would block. Ask for
  /// receiving only after receive() has returned 0: with TLS, poll(2) does not see decrypted bytes.
  pollfd toConnect() const { return {fd_, connectEvent_, 0}; }
  pollfd toSend() const { return {fd_, writeEvent_, 0}; }
  pollfd toReceive() const { return {fd_, readEvent_, 0}; }
  bool secure() const { return secure_; }

  /// Whether something has arrived that was not read, such as the end of the connection.
  bool readable() const;

  /// Ends the connection and wakes the threads that wait for it. Any thread may call it.
  void shutdown() noexcept;

 private:
  enum class Phase { connecting, handshaking, connected };

  bool finishTcp();
  bool finishTls();

  // OpenSSL allows one thread at a time per connection. Its calls do not block here, so the wait is short.
  std::unique_lock<std::mutex> secureGuard();

  const std::string host_;
  const bool tcp_;
  const Poco::Net::Context::Ptr tls_;
  Poco::Net::StreamSocket socket_;
  int fd_ = -1;
  Phase phase_ = Phase::connecting;
  bool secure_ = false;
  std::mutex secureMutex_;
  // What to poll for: TLS may have to read in order to write.
  short connectEvent_ = POLLOUT;
  short writeEvent_ = POLLOUT;
  short readEvent_ = POLLIN;
};

}  // namespace lockkeeper
