#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/server_login.h"

namespace lockkeeper::postgres {

/// Where a PostgreSQL server is, who we are there, and how a session with it is made.
struct ServerOptions : ServerLogin {
  std::string schema = "public";  ///< In which the tables are.
  bool createTable = false;
  std::size_t connections = 4;  ///< The most sessions in use at once.
  std::chrono::milliseconds connectTimeout{2000};
  std::chrono::milliseconds ioTimeout{3000};

  /// Reads what ServerLogin::read() does, with 5432 as the default port, the parameters of the members above,
  /// and allows `own` besides. Throws ConfigError that names the wrong part and what is allowed, without a
  /// secret.
  static ServerOptions fromUri(const StoreUri& uri, std::vector<std::string_view> own);
};

}  // namespace lockkeeper::postgres
