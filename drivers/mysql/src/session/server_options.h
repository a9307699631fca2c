#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/server_login.h"

namespace lockkeeper::mysql {

/// Where a MySQL or MariaDB server is, who we are there, and how a session with it is made.
struct ServerOptions : ServerLogin {
  bool createTable = false;
  std::chrono::seconds connectTimeout{2};
  std::chrono::milliseconds ioTimeout{std::chrono::seconds{3}};

  /// Reads what ServerLogin::read() does, with 3306 as the default port, and the parameters `createTable`,
  /// `connectTimeout` and `ioTimeout`; allowOnly() says which are allowed. Throws ConfigError that names the
  /// wrong part and what is allowed, without a secret.
  static ServerOptions fromUri(const StoreUri& uri);
};

/// How many sessions a driver may be told to have.
inline constexpr std::size_t mostConnections = 256;

/// Allows the parameters `own` and those of ServerLogin. Throws ConfigError for others.
void allowOnly(const StoreUri& uri, std::vector<std::string_view> own);

}  // namespace lockkeeper::mysql
