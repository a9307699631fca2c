#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "lockkeeper/sql/server_address.h"

namespace lockkeeper::inventory {

enum class Dialect { sqlite, mysql };

struct SqliteFile {
  std::string path;
};

/// Where the tables are.
struct DatabaseUri {
  std::variant<SqliteFile, sql::ServerAddress> place;

  Dialect dialect() const { return place.index() == 0 ? Dialect::sqlite : Dialect::mysql; }

  /// For messages: no user, no password.
  std::string display() const;

  /// Throws ConfigError that says what is wrong without repeating a secret.
  static DatabaseUri parse(std::string_view text);
};

}  // namespace lockkeeper::inventory
