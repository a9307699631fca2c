#pragma once

#include <string>
#include <vector>

#include "http/filter_rules.h"
#include "lockkeeper/poco/request_locks.h"

namespace lockkeeper::poco {

/// A route of RequestLocks, checked.
struct LockRoute {
  std::string name;
  RoutePattern pattern;
  std::vector<KeySource> sources;
  std::string scope;
  LockOptions lock;

  /// From completed() options. Throws std::invalid_argument that names the setting.
  static LockRoute of(const LockedRoute& given, const RequestLockOptions& options);

  /// SCOPE/VALUE; with several sources SCOPE/VALUE/VALUE…, where a value that contains a slash is hashed.
  std::string keyFor(const RequestFacts& facts) const;
};

/// `options` whose routes name how each lock is taken and kept: what they left open is the manager's, as
/// LockedRoute::lock says.
RequestLockOptions completed(RequestLockOptions options, const LockOptions& defaults);

/// Throws std::invalid_argument for what is not allowed, whatever the routes.
void checkFilter(const RequestLockOptions& options);

using LockRules = FilterRules<RequestLockOptions, LockRoute>;

}  // namespace lockkeeper::poco
