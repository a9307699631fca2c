#pragma once

#include <string>

#include "lockkeeper/store_uri.h"

namespace lockkeeper::inventory {

/// Where a PostgreSQL server is, and who we are there.
struct PostgresServer {
  std::string host;
  std::string port;
  std::string user;
  std::string password;  ///< Secret.
  std::string database;
  std::string display;  ///< For messages: no user, no password.

  std::string socket{};  ///< The folder of a unix socket, instead of a host.
  bool tls = false;      ///< Encrypted or not made at all.
  bool verify = true;    ///< With tls: the server's certificate and host name are verified.
  CertificateFiles files{};
  std::string schema = "public";  ///< In which the tables are.

  /// Reads postgres://user:password@host[:5432]/database with the parameters `passwordFile`, `socket`, `tls`,
  /// `verify`, `caFile`, `certFile`, `keyFile` and `schema`. Throws ConfigError that names the wrong part and
  /// what is allowed, without a secret.
  static PostgresServer fromUri(const StoreUri& uri);
};

}  // namespace lockkeeper::inventory
