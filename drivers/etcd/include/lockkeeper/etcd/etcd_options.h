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

/// Which etcd, and how to talk to it. Each field says its URI parameter where the name differs.
struct LOCKKEEPER_ETCD_EXPORT EtcdOptions {
  /// The members that are asked, one after the other when one does not answer: 1 to 31.
  std::vector<Member> members{Member{.host = "127.0.0.1", .port = 2379}};

  /// What the keys of all locks begin with, without a '/' at its end: the URI's path. 1 to 200 printable
  /// characters without spaces.
  std::string prefix = "/lockkeeper";

  std::string user;      ///< Of etcd's own authentication; empty for none.
  std::string password;  ///< From the URI, or `passwordFile` (its first line).

  bool tls = false;    ///< Encrypted, with the host name verified: the scheme `etcds`.
  std::string caFile;  ///< PEM file of the authorities to trust; empty for the system's own.

  /// PEM files of the certificate that the server may ask for, with those between it and its authority, and
  /// of its key without a pass phrase. Both or none.
  /// @{
  std::string certFile;
  std::string keyFile;
  /// @}

  /// For connecting to one member, with TLS: 1 ms to 1 h.
  std::chrono::milliseconds connectTimeout{700};

  /// How long one member may take to answer; then the next one is asked, as long as the time for the call
  /// lasts (ManagerOptions::operationTimeout): 1 ms to 1 h.
  std::chrono::milliseconds ioTimeout{700};

  /// Reads etcd:// and etcds:// URIs. Throws ConfigError that names the wrong part and what is allowed. Reads
  /// passwordFile; connects nowhere.
  static EtcdOptions fromUri(const StoreUri& uri);

  /// Throws std::invalid_argument for a value out of range.
  void check() const;

  /// For messages: scheme, members and prefix, no secret.
  std::string display() const;
};

}  // namespace lockkeeper::etcd
