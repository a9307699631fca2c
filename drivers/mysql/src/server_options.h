#pragma once

#include <chrono>
#include <string>

#include "lockkeeper/sql/server_address.h"

namespace lockkeeper::mysql {

/// What the URIs of all stores on a ServerSession have in common.
struct ServerOptions {
  sql::ServerAddress server;
  std::string socket{};  ///< The path of a unix socket, instead of host and port.
  bool createTable = false;
  std::chrono::seconds connectTimeout{2};
  std::chrono::milliseconds ioTimeout{std::chrono::seconds{3}};

  /// Reads `socket`, `createTable`, `connectTimeout` and `ioTimeout`; other parameters are the caller's.
  /// Throws ConfigError that names the wrong part and what is allowed.
  static ServerOptions fromUri(const StoreUri& uri);
};

}  // namespace lockkeeper::mysql
