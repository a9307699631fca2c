#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/export.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper {

/// One of the servers that a URI names.
struct ServerAddress {
  std::string host;  ///< A name or an address, without brackets.
  std::uint16_t port;
  std::string display;  ///< For messages that are about this server alone.
};

/// How the servers of one kind are named.
struct ServerKind {
  std::uint16_t defaultPort;
  std::size_t longestSocket = 107;   ///< Of the parameter `socket`, in bytes: the kernel takes no more.
  std::size_t longestDatabase = 64;  ///< In characters.
};

/// For drivers of databases: which servers a URI names, who we are there, and how we connect.
struct LOCKKEEPER_CORE_EXPORT ServerLogin {
  std::vector<ServerAddress> hosts;  ///< 1 to 9. Several: one of them takes the writes.
  std::string user;                  ///< Empty when the URI names none.
  std::string password;              ///< Secret.
  std::string database;
  std::string display;  ///< For messages: no user, no password.

  std::string socket{};      ///< An absolute path, in place of the one host and its port; empty: TCP.
  bool tls = false;          ///< Encrypted or not connected at all.
  bool verify = true;        ///< With tls: the server's certificate and host name are verified.
  CertificateFiles files{};  ///< Without a caFile, the system's own authorities are trusted.

  /// What read() reads, for StoreUri::allowOnly().
  static constexpr std::array<std::string_view, 7> parameters{"caFile", "certFile", "keyFile", "passwordFile",
                                                              "socket", "tls",      "verify"};

  /// Reads `scheme://user:password@host[:port][,host2[:port2],…]/database` and its `parameters`. The log-in
  /// stands before the first host and is for all. No text has a NUL, so that a C library cuts none short, and
  /// the database's name has only [A-Za-z0-9_]. Throws ConfigError that names the wrong part and what is
  /// allowed, without a secret. Reads the passwordFile.
  static ServerLogin read(const StoreUri& uri, const ServerKind& kind);
};

}  // namespace lockkeeper
