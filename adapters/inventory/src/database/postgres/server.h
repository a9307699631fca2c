#pragma once

#include <chrono>
#include <string>

#include "lockkeeper/driver/server_login.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::inventory {

/// Where a PostgreSQL server is, who we are there, and where our tables are.
struct PostgresServer : ServerLogin {
  std::string schema = "public";

  /// Reads postgres://user:password@host[:5432]/database with the parameters of ServerLogin and `schema`.
  /// Throws ConfigError that names the wrong part and what is allowed, without a secret.
  static PostgresServer fromUri(const StoreUri& uri);

  /// The settings that make a transaction mean what our statements say, whatever the server's defaults are,
  /// and that bound how long the server waits for rows, works on a statement, and waits for us while a
  /// transaction is open: a list for SELECT. `isLocal`: until the end of the transaction.
  std::string pins(std::chrono::seconds operationTimeout, bool isLocal) const;
};

}  // namespace lockkeeper::inventory
