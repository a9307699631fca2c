#include "lockkeeper/stream/stream.h"

#include <Poco/Exception.h>
#include <Poco/Net/IPAddress.h>
#include <Poco/Net/RejectCertificateHandler.h>
#include <Poco/Net/SSLException.h>
#include <Poco/Net/SecureStreamSocket.h>
#include <Poco/Net/Utility.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include "lockkeeper/error.h"

namespace lockkeeper {

namespace {

using Poco::Net::SecureStreamSocket;

[[noreturn]] void broken(const std::string& what) { throw StreamBroken(what); }

// A peer that has vanished is noticed after about 10 s + 3 * 5 s, even if nothing is sent to it.
void setTcpOptions(Poco::Net::StreamSocket& socket) {
  socket.setNoDelay(true);
  socket.setKeepAlive(true);
  socket.setOption(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  socket.setOption(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  socket.setOption(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

// SSL_get_error reads errno and the thread's error queue of OpenSSL, so earlier errors must be removed.
void forgetEarlierFaults() {
  errno = 0;
  Poco::Net::Utility::clearErrorStack();
}

// Calls the socket, and turns exceptions of Poco into StreamBroken or ConfigError.
template <class Call>
auto guarded(Call&& call) {
  try {
    return call();
  } catch (const Poco::TimeoutException&) {
    broken("timed out");
  } catch (const Poco::Net::CertificateValidationException&) {
    throw ConfigError("the server's certificate is not for this host name");
  } catch (const Poco::Net::SSLException& fault) {
    if (fault.message().find("certificate verify failed") != std::string::npos) {
      throw ConfigError("the server's certificate is not signed by a trusted authority");
    }
    for (const char* const alert :
         {"alert certificate required", "alert bad certificate", "alert unknown ca"}) {
      if (fault.message().find(alert) == std::string::npos) continue;
      throw ConfigError("the server asks for a certificate of its clients, or refuses the one in certFile");
    }
    broken(fault.displayText());
  } catch (const Poco::Exception& fault) {
    broken(fault.displayText());
  }
}

}  // namespace

Poco::Net::Context::Ptr makeTlsContext(const TlsFiles& files) {
  Poco::Net::Context::Params params;
  params.caLocation = files.caFile;
  params.loadDefaultCAs = files.caFile.empty();
  params.certificateFile = files.certFile;
  params.privateKeyFile = files.keyFile;
  // With any other mode, Poco skips the host name check for loopback addresses.
  params.verificationMode = Poco::Net::Context::VERIFY_STRICT;
  try {
    Poco::Net::Context::Ptr context = new Poco::Net::Context(Poco::Net::Context::TLS_CLIENT_USE, params);
    if (!files.certFile.empty() && ::SSL_CTX_check_private_key(context->sslContext()) != 1) {
      throw Poco::Net::SSLException("the key is not the certificate's");
    }
    context->requireMinimumProtocol(Poco::Net::Context::PROTO_TLSV1_2);
    // Our own handler: one that the application has set for other connections might accept more.
    context->setInvalidCertificateHandler(new Poco::Net::RejectCertificateHandler(false));
    return context;
  } catch (const Poco::Exception&) {
    std::string named;
    for (const auto& [name, file] : {std::pair<const char*, const std::string&>{"caFile", files.caFile},
                                     {"certFile", files.certFile},
                                     {"keyFile", files.keyFile}}) {
      if (!file.empty()) named += std::string(named.empty() ? "" : ", ") + name + " " + quoted(file);
    }
    throw ConfigError(named + ": these files cannot be read as PEM, or the key is not the certificate's");
  }
}

Stream::Stream(std::string host, const Poco::Net::SocketAddress& address, Poco::Net::Context::Ptr tls)
    : host_(std::move(host)),
      tcp_(address.family() != Poco::Net::SocketAddress::UNIX_LOCAL),
      tls_(std::move(tls)) {
  guarded([&] {
    socket_.connectNB(address);
    fd_ = socket_.impl()->sockfd();
    ::fcntl(fd_, F_SETFD, FD_CLOEXEC);
  });
}

bool Stream::connect() {
  return guarded([&] {
    if (phase_ == Phase::connecting && !finishTcp()) return false;
    if (phase_ == Phase::handshaking && !finishTls()) return false;
    return true;
  });
}

bool Stream::finishTcp() {
  pollfd watched = toConnect();
  if (::poll(&watched, 1, 0) == 0) return false;
  if (const int fault = socket_.impl()->socketError(); fault != 0)
    broken(std::generic_category().message(fault));
  if (tcp_) setTcpOptions(socket_);
  phase_ = Phase::connected;
  if (!tls_) return true;
  Poco::Net::IPAddress address;
  // Server name indication is for names only (RFC 6066).
  const std::string name = Poco::Net::IPAddress::tryParse(host_, address) ? "" : host_;
  socket_ = SecureStreamSocket::attach(socket_, name, tls_);
  secure_ = true;
  phase_ = Phase::handshaking;
  return true;
}

bool Stream::finishTls() {
  SecureStreamSocket secured(socket_);
  forgetEarlierFaults();
  const int result = secured.completeHandshake();
  if (result == 0) broken("the server ended the TLS handshake");
  if (result < 0) {
    connectEvent_ = result == SecureStreamSocket::ERR_SSL_WANT_WRITE ? POLLOUT : POLLIN;
    return false;
  }
  secured.verifyPeerCertificate(host_);
  phase_ = Phase::connected;
  return true;
}

std::size_t Stream::send(std::string_view bytes) {
  const int length = static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX));
  return guarded([&]() -> std::size_t {
    const auto guard = secureGuard();
    int sent = -1;
    try {
      sent = socket_.sendBytes(bytes.data(), length, MSG_NOSIGNAL);
    } catch (const Poco::IOException& fault) {
      // Poco 1.11 reports in this way that it would block; later versions return -1.
      if (fault.code() != EAGAIN) throw;
    }
    if (sent > 0) return static_cast<std::size_t>(sent);
    writeEvent_ = secure_ && sent == SecureStreamSocket::ERR_SSL_WANT_READ ? POLLIN : POLLOUT;
    return 0;
  });
}

std::size_t Stream::receive(std::span<char> room) {
  const int length = static_cast<int>(std::min<std::size_t>(room.size(), INT_MAX));
  return guarded([&]() -> std::size_t {
    const auto guard = secureGuard();
    const int received = socket_.receiveBytes(room.data(), length);
    if (received > 0) return static_cast<std::size_t>(received);
    if (received == 0) broken("the server closed the connection");
    readEvent_ = secure_ && received == SecureStreamSocket::ERR_SSL_WANT_WRITE ? POLLOUT : POLLIN;
    return 0;
  });
}

bool Stream::readable() const {
  pollfd watched{fd_, POLLIN, 0};
  return ::poll(&watched, 1, 0) != 0;
}

void Stream::shutdown() noexcept { ::shutdown(fd_, SHUT_RDWR); }

std::unique_lock<std::mutex> Stream::secureGuard() {
  if (!secure_) return {};
  std::unique_lock guard(secureMutex_);
  forgetEarlierFaults();
  return guard;
}

}  // namespace lockkeeper
