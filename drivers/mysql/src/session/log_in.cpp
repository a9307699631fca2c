#include "session/log_in.h"

#include <fcntl.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "session/client_library.h"
#include "session/reply_fault.h"
#include "session/server_options.h"
#include "session/wait/poll_until.h"

namespace lockkeeper::mysql {
namespace {

// The client library's own time-outs are for one read each, and begin anew with each byte. So it waits here
// during a log-in, and the watch ends the waits of which it does not tell: those of the TLS handshake.
class Waits {
 public:
  Waits(const Clock& clock, SocketWatch& watch, Instant connectedBy, Instant until)
      : clock_(clock), watch_(watch), connectedBy_(connectedBy), until_(until) {
    current() = this;
  }
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;
  ~Waits() {
    current() = nullptr;
    unguard();
  }

  /// As MARIADB_OPT_IO_WAIT wants it: positive when the socket can be used, 0 when time is over.
  static int wait(my_socket socket, my_bool forReading, int /*timeout*/) noexcept {
    try {
      if (current()->awaited(socket, forReading != 0)) return 1;
    } catch (const std::exception&) {  // no memory
    }
    errno = ETIMEDOUT;
    return 0;
  }

 private:
  // The library gives no pointer of ours back.
  static Waits*& current() {
    thread_local Waits* waits = nullptr;
    return waits;
  }

  bool awaited(int socket, bool forReading) {
    // From the first wait on, which is for the connection. Of a name with several addresses, the library may
    // have gone on to the next one since.
    if (socket_ < 0 || (forReading && !connected_)) guard(socket);
    connected_ = connected_ || forReading;
    const Instant end = connected_ ? until_ : connectedBy_;
    // A server that sends again and again does not get more time by that.
    if (clock_.now() >= end) return false;
    pollfd source{socket, static_cast<short>(forReading ? POLLIN : POLLOUT), 0};
    pollUntil({&source, 1}, clock_, end);
    return source.revents != 0;
  }

  void guard(int socket) {
    unguard();
    // A duplicate, because the library closes its own when it meets an error.
    socket_ = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
    watched_.emplace(watch_, socket_);
    guard_.emplace(*watched_, until_);
  }

  void unguard() {
    guard_.reset();
    watched_.reset();
    if (socket_ >= 0) ::close(socket_);
  }

  const Clock& clock_;
  SocketWatch& watch_;
  const Instant connectedBy_;
  const Instant until_;
  bool connected_ = false;
  int socket_ = -1;
  std::optional<SocketWatch::Socket> watched_;
  std::optional<SocketWatch::Guard> guard_;
};

// Ways to log in that do not send the password as it is.
constexpr const char* safePlugins =
    "mysql_native_password,caching_sha2_password,sha256_password,client_ed25519,parsec";

// Encrypted, or not at all: what is asked for is never given up in silence.
void setTls(MYSQL* handle, const ServerOptions& options) {
  const my_bool on = options.tls ? 1 : 0;
  mysql_options(handle, MYSQL_OPT_SSL_ENFORCE, &on);
  // Newer libraries verify unless told not to, and then refuse every server that has no TLS.
  const my_bool verify = options.tls && options.verify ? 1 : 0;
  mysql_options(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
  // Whoever answers could ask for the password as it is.
  if (verify == 0) mysql_options(handle, MARIADB_OPT_RESTRICTED_AUTH, safePlugins);
  if (!options.tls) return;
  mysql_options(handle, MARIADB_OPT_TLS_VERSION, "TLSv1.2,TLSv1.3");
  const CertificateFiles& files = options.files;
  if (!files.caFile.empty()) mysql_options(handle, MYSQL_OPT_SSL_CA, files.caFile.c_str());
  if (!files.certFile.empty()) mysql_options(handle, MYSQL_OPT_SSL_CERT, files.certFile.c_str());
  if (!files.keyFile.empty()) mysql_options(handle, MYSQL_OPT_SSL_KEY, files.keyFile.c_str());
}

Handle newHandle(const ServerOptions& options) {
  static std::once_flag initialised;
  std::call_once(initialised, [] { mysql_library_init(0, nullptr, nullptr); });
  Handle handle(mysql_init(nullptr));
  if (!handle) throw std::bad_alloc();
  // Without one, the library would wait for a connection as long as the kernel does.
  const auto timeout = static_cast<unsigned>(options.connectTimeout.count());
  mysql_options(handle.get(), MYSQL_OPT_CONNECT_TIMEOUT, &timeout);
  mysql_options(handle.get(), MARIADB_OPT_IO_WAIT, reinterpret_cast<const void*>(&Waits::wait));
  // A hostile server could ask for our files otherwise.
  const unsigned off = 0;
  mysql_options(handle.get(), MYSQL_OPT_LOCAL_INFILE, &off);
  mysql_options(handle.get(), MYSQL_OPT_MAX_ALLOWED_PACKET, &longestReply);
  mysql_options(handle.get(), MYSQL_SET_CHARSET_NAME, "utf8mb4");
  // Or the library would take "localhost" for its unix socket.
  const unsigned protocol = options.socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
  mysql_options(handle.get(), MYSQL_OPT_PROTOCOL, &protocol);
  setTls(handle.get(), options);
  return handle;
}

// The addresses of a host. The library gets one at a time: of several, it would wait for the second one as
// long as the kernel does. It gets the host's name where TLS compares that with the certificate.
std::vector<std::string> hostsToTry(const ServerOptions& options, const ServerAddress& address) {
  if (!options.socket.empty() || (options.tls && options.verify)) return {address.host};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(address.host.c_str(), nullptr, &hints, &found); error != 0) {
    throwConnectFault(CR_UNKNOWN_HOST, std::string("unknown host: ") + ::gai_strerror(error),
                      address.display);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  std::vector<std::string> hosts;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0) {
      hosts.emplace_back(text);
    }
  }
  return hosts.empty() ? std::vector{address.host} : hosts;
}

}  // namespace

void CloseHandle::operator()(st_mysql* handle) const { mysql_close(handle); }

Handle logIn(const ServerOptions& options, const ServerAddress& address, const Clock& clock,
             SocketWatch& watch, Instant deadline) {
  const Instant began = clock.now();
  const Instant connectedBy = std::min(deadline, began + options.connectTimeout);
  const Instant until = std::min(deadline, began + 2 * options.connectTimeout);
  const char* const path = options.socket.empty() ? nullptr : options.socket.c_str();
  const std::vector<std::string> hosts = hostsToTry(options, address);
  for (std::size_t i = 0;; ++i) {
    const Instant now = clock.now();
    const auto share = (connectedBy - now) / static_cast<std::int64_t>(hosts.size() - i);
    Handle handle = newHandle(options);
    const Waits waits(clock, watch, now + share, until);
    if (mysql_real_connect(handle.get(), hosts[i].c_str(), options.user.c_str(), options.password.c_str(),
                           options.database.c_str(), address.port, path,
                           CLIENT_MULTI_STATEMENTS) != nullptr) {
      mysql_options(handle.get(), MARIADB_OPT_IO_WAIT, nullptr);
      return handle;
    }
    if (clock.now() >= until) throwConnectFault(CR_SERVER_LOST, "no log-in in time", address.display);
    const unsigned error = mysql_errno(handle.get());
    const bool unreached = error == CR_CONNECTION_ERROR || error == CR_CONN_HOST_ERROR;
    if (unreached && i + 1 < hosts.size()) continue;
    throwConnectFault(error, mysql_error(handle.get()), address.display);
  }
}

}  // namespace lockkeeper::mysql
