#pragma once

#include <chrono>
#include <string>

#include "lockkeeper/redis/export.h"
#include "lockkeeper/redis/redis_options.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::redis {

/// The locks of a legacy fleet: where they are, and how far its clients may be trusted. Each field is a URI
/// parameter of the same name.
struct LOCKKEEPER_REDIS_EXPORT LegacyOptions {
  RedisOptions redis;  ///< The server. Its `fence` and `minReplicas` are not used.

  /// The prefix that the legacy clients put before each key, exactly: at most 256 bytes.
  std::string keyPrefix;

  /// How much longer than its value says a legacy client's lock is respected, because the client's clock may
  /// be behind the server's: 0 to 1 h. The lock of a client that has died stays busy for this much longer.
  std::chrono::milliseconds skewAllowance{1000};

  /// Writes digits only, for fleets with clients that refuse anything else. The token is then in a companion
  /// key; docs/drivers/legacy.md says what is lost by that.
  bool pure = false;

  /// Reads redis+legacy:// URIs. Throws ConfigError that names the wrong part and what is allowed. Reads
  /// passwordFile; connects nowhere.
  static LegacyOptions fromUri(const StoreUri& uri);

  /// Throws std::invalid_argument for what is out of range, and for a keyPrefix that is not allowed.
  void check() const;
};

}  // namespace lockkeeper::redis
