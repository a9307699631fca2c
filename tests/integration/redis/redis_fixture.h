#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "claimant.h"
#include "fault_proxy.h"
#include "lockkeeper/error.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "redis_server.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {

/// A driver for 127.0.0.1:port; `query` is what the URI has after its '?'.
inline std::shared_ptr<LockDriver> openRedis(std::uint16_t port, const std::string& query = "",
                                             const std::string& scheme = "redis") {
  StoreRegistry registry;
  redis::use(registry);
  return registry.open(scheme + "://127.0.0.1:" + std::to_string(port) + (query.empty() ? "" : "?" + query));
}

/// "Redis" or "Legacy": for names of tests.
inline std::string nameOf(const std::string& scheme) { return scheme == "redis" ? "Redis" : "Legacy"; }

inline std::string schemeName(const ::testing::TestParamInfo<const char*>& info) {
  return nameOf(info.param);
}

/// What a store's URI has after its '?' so that a server that does not answer costs a test little time.
constexpr const char* shortTimeouts = "ioTimeout=300ms&connectTimeout=300ms";
constexpr std::chrono::milliseconds shortIoTimeout{300};

/// A real server, a proxy in front of it, and a client of each.
class RedisFaultTest : public ::testing::Test {
 protected:
  std::shared_ptr<LockDriver> openProxied(const std::string& query = "") const {
    return openRedis(proxy.port(), query);
  }
  bool isFree(const std::string& key) const { return server.command({"EXISTS", key}) == "0"; }

  RedisServer server;
  FaultProxy proxy{server.port()};
  const std::shared_ptr<LockDriver> direct = openRedis(server.port());
};

}  // namespace lockkeeper::test
