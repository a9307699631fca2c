#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockkeeper/driver/store_uri.h"

namespace lockkeeper::sql {

/// Where a MySQL or MariaDB server is, and who we are there.
struct ServerAddress {
  std::string host;
  std::uint16_t port;
  std::string user;
  std::string password;  ///< Secret.
  std::string database;
  std::string display;  ///< For messages: no user, no password.

  /// From scheme://user:password@host[:3306]/database, or with ?passwordFile=… for the password. Which
  /// parameters are allowed is the caller's to say. Throws ConfigError that says what is wrong without
  /// repeating a secret.
  static ServerAddress fromUri(const StoreUri& uri);

  /// In Poco's words. Holds the password: never show it.
  std::string connectionString() const;
};

/// Throws ConfigError unless the name has 1 to 64 of [A-Za-z0-9_], so that it can stand in a statement as it
/// is. `what` begins the message.
void checkIdentifier(std::string_view what, std::string_view name);

}  // namespace lockkeeper::sql
