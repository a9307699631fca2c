#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "lockkeeper/driver/store_uri.h"

namespace lockkeeper::mysql {

/// Where a MySQL or MariaDB server is, who we are there, and how a session with it is made.
struct ServerOptions {
  std::string host;
  std::uint16_t port;
  std::string user;
  std::string password;  ///< Secret.
  std::string database;
  std::string display;  ///< For messages: no user, no password.

  std::string socket{};    ///< The path of a unix socket, instead of host and port.
  bool tls = false;        ///< Encrypted or not made at all.
  bool verify = true;      ///< With tls: the server's certificate and host name are verified.
  std::string caFile{};    ///< PEM file of the authorities to trust; empty for the system's own.
  std::string certFile{};  ///< PEM file of our own certificate, for servers that ask for one; empty: none.
  std::string keyFile{};   ///< PEM file of its key.
  bool createTable = false;
  std::chrono::seconds connectTimeout{2};
  std::chrono::milliseconds ioTimeout{std::chrono::seconds{3}};

  /// Reads scheme://user:password@host[:3306]/database with the parameters `passwordFile`, `socket`, `tls`,
  /// `verify`, `caFile`, `certFile`, `keyFile`, `createTable`, `connectTimeout` and `ioTimeout`; which are
  /// allowed is the caller's to say. Throws ConfigError that names the wrong part and what is allowed,
  /// without a secret.
  static ServerOptions fromUri(const StoreUri& uri);
};

/// Throws ConfigError unless the name has 1 to 64 of [A-Za-z0-9_], so that it can stand in a statement as it
/// is. `what` begins the message.
void checkIdentifier(std::string_view what, std::string_view name);

}  // namespace lockkeeper::mysql
