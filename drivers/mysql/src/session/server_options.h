#pragma once

#include <chrono>
#include <string>

#include "lockkeeper/sql/server_address.h"

namespace lockkeeper::mysql {

/// What the URIs of all stores on a ServerSession have in common.
struct ServerOptions {
  sql::ServerAddress server;
  std::string socket{};  ///< The path of a unix socket, instead of host and port.
  bool tls = false;      ///< Encrypted, with the server's certificate and host name verified.
  std::string caFile{};  ///< PEM file of the authorities to trust; empty for the system's own.
  bool createTable = false;
  std::chrono::seconds connectTimeout{2};
  std::chrono::milliseconds ioTimeout{std::chrono::seconds{3}};

  /// Reads `socket`, `tls`, `caFile`, `createTable`, `connectTimeout` and `ioTimeout`; other parameters are
  /// the caller's. Throws ConfigError that names the wrong part and what is allowed.
  static ServerOptions fromUri(const StoreUri& uri);
};

}  // namespace lockkeeper::mysql
