#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/store_uri.h"

namespace lockkeeper::postgres {

/// One of the servers that a URI names.
struct ServerAddress {
  std::string host;
  std::string port;
  std::string display;  ///< For messages that are about this server alone.
};

/// Where a PostgreSQL server is, who we are there, and how a session with it is made.
struct ServerOptions {
  std::vector<ServerAddress> hosts;  ///< Not empty. Several: one of them takes the writes.
  std::string user;
  std::string password;  ///< Secret.
  std::string database;
  std::string display;  ///< For messages: no user, no password.

  std::string socket{};           ///< The folder of a unix socket, instead of a host.
  bool tls = false;               ///< Encrypted or not made at all.
  bool verify = true;             ///< With tls: the server's certificate and host name are verified.
  CertificateFiles files{};       ///< Without a caFile, the system's own authorities are trusted.
  std::string schema = "public";  ///< In which the tables are.
  bool createTable = false;
  std::size_t connections = 4;  ///< The most sessions in use at once.
  std::chrono::milliseconds connectTimeout{2000};
  std::chrono::milliseconds ioTimeout{3000};

  /// Reads scheme://user:password@host[:5432][,host2[:5432],…]/database with the parameters `own`, and
  /// `passwordFile`, `socket`, `tls`, `verify`, `caFile`, `certFile`, `keyFile`, `schema`, `createTable`,
  /// `connections`, `connectTimeout` and `ioTimeout`. The log-in stands before the first host and is for all.
  /// Throws ConfigError that names the wrong part and what is allowed, without a secret.
  static ServerOptions fromUri(const StoreUri& uri, std::vector<std::string_view> own);
};

/// The parameter `name`, or `otherwise`: a name that can stand between quotes in a statement, at most
/// `longest` characters. Throws ConfigError for others.
std::string identifier(const StoreUri& uri, std::string_view name, std::string otherwise,
                       std::size_t longest = 63);

}  // namespace lockkeeper::postgres
