#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "lockkeeper/sql/server_address.h"

namespace lockkeeper::mysql {

/// What a mysql+version:// URI says; VersionDriver documents its parameters.
struct VersionOptions {
  sql::ServerAddress server;
  std::string table = "lockkeeper_locks";
  bool createTable = false;
  std::size_t connections = 8;
  std::chrono::seconds connectTimeout{2};

  /// Throws ConfigError that names the wrong part and what is allowed.
  static VersionOptions fromUri(const StoreUri& uri);
};

}  // namespace lockkeeper::mysql
