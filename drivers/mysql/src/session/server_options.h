#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/store_uri.h"

namespace lockkeeper::mysql {

/// One of the servers that a URI names.
struct ServerAddress {
  std::string host;
  std::uint16_t port;
  std::string display;  ///< For messages that are about this server alone.
};

/// Where a MySQL or MariaDB server is, who we are there, and how a session with it is made.
struct ServerOptions {
  std::vector<ServerAddress> hosts;  ///< Not empty. Several: one of them takes the writes.
  std::string user;
  std::string password;  ///< Secret.
  std::string database;
  std::string display;  ///< For messages: no user, no password.

  std::string socket{};      ///< The path of a unix socket, instead of host and port.
  bool tls = false;          ///< Encrypted or not made at all.
  bool verify = true;        ///< With tls: the server's certificate and host name are verified.
  CertificateFiles files{};  ///< Without a caFile, the system's own authorities are trusted.
  bool createTable = false;
  std::chrono::seconds connectTimeout{2};
  std::chrono::milliseconds ioTimeout{std::chrono::seconds{3}};

  /// Reads scheme://user:password@host[:3306][,host2[:3306],…]/database with the parameters `passwordFile`,
  /// `socket`, `tls`, `verify`, `caFile`, `certFile`, `keyFile`, `createTable`, `connectTimeout` and
  /// `ioTimeout`; allowOnly() says which are allowed. The log-in stands before the first host and is for all.
  /// Throws ConfigError that names the wrong part and what is allowed, without a secret.
  static ServerOptions fromUri(const StoreUri& uri);
};

/// How many sessions a driver may be told to have.
inline constexpr std::size_t mostConnections = 256;

/// Allows the parameters `own` and those that say who and where we are: passwordFile, socket, tls, verify,
/// caFile, certFile and keyFile. Throws ConfigError for others.
void allowOnly(const StoreUri& uri, std::vector<std::string_view> own);

}  // namespace lockkeeper::mysql
