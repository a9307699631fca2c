#pragma once

#include <string_view>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "store/redis_store.h"

namespace lockkeeper::redis {

/// The calls of a driver for shares of keys (scripts/permit/permits.lua) that differ from those for whole
/// keys. Thread-safe.
class PermitCalls {
 public:
  explicit PermitCalls(RedisStore& store) : store_(store) {}

  /// As LockDriver::acquire(), for a claim of a share. `wire` is used for it.
  AcquireResult acquire(const AcquireRequest& request, Request& wire);

  /// As Permits::shareHolders().
  std::vector<Holder> holders(std::string_view key, Instant deadline);

 private:
  RedisStore& store_;
};

}  // namespace lockkeeper::redis
