#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lockkeeper/etcd/export.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::etcd {

/// One member of a cluster.
struct Member {
  std::string host;  ///< A name, an IPv4 or an IPv6 address (without brackets).
  std::uint16_t port = 2379;
};

/// Which cluster to use, and how to connect to it. A field names its URI parameter if that has another name.
struct LOCKKEEPER_ETCD_EXPORT EtcdOptions {
  /// The cluster's members, 1 to 31. If one does not answer, the next one is asked.
  std::vector<Member> members{Member{.host = "127.0.0.1", .port = 2379}};

  /// The prefix of all keys, without a '/' at its end: the URI's path. 1 to 200 printable characters without
  /// spaces.
  std::string prefix = "/lockkeeper";

  std::string user;      ///< For etcd's authentication; empty: none.
  std::string password;  ///< From the URI, or from the first line of `passwordFile`.

  bool tls = false;    ///< Encrypts, and verifies the host name: the scheme `etcds`.
  std::string caFile;  ///< PEM file of the authorities to trust; empty: the system's.

  /// PEM files of the client certificate, with its intermediate certificates, and of its key without a pass
  /// phrase. Both or none.
  /// @{
  std::string certFile;
  std::string keyFile;
  /// @}

  /// The timeout for a connection to one member, TLS included: 1 ms to 1 h.
  std::chrono::milliseconds connectTimeout{700};

  /// How long one member may take to answer: 1 ms to 1 h. Then the next one is asked, until the call's own
  /// timeout is over (ManagerOptions::operationTimeout).
  std::chrono::milliseconds ioTimeout{700};

  /// Reads etcd:// and etcds:// URIs, and the passwordFile. Does not connect. Throws ConfigError that names
  /// the wrong part and what is allowed.
  static EtcdOptions fromUri(const StoreUri& uri);

  /// Throws std::invalid_argument for a value out of range.
  void check() const;

  /// Scheme, members and prefix, for messages. Contains no secret.
  std::string display() const;
};

}  // namespace lockkeeper::etcd
