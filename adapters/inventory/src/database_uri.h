#pragma once

#include <string>
#include <string_view>

namespace lockkeeper::inventory {

enum class Dialect { sqlite, mysql };

/// Where the tables are, in Poco::Data's terms.
struct DatabaseUri {
  Dialect dialect;
  std::string connection;  ///< Poco's connection string. Holds the password: never show it.
  std::string display;     ///< For messages: no user, no password.

  /// Throws ConfigError that says what is wrong without repeating a secret.
  static DatabaseUri parse(std::string_view text);
};

}  // namespace lockkeeper::inventory
