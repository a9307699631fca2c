#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "fault_proxy.h"
#include "lockkeeper/driver.h"
#include "lockkeeper/error.h"
#include "lockkeeper/random.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "redis_server.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {

constexpr std::chrono::milliseconds longTtl = std::chrono::minutes{10};

/// How much later than promised a call may return on a machine that is busy with other things. Far below what
/// a call without a bound would take.
constexpr std::chrono::seconds schedulingSlack{5};

inline Instant now() { return systemClock()->now(); }
inline Instant in(std::chrono::milliseconds length) { return now() + length; }
inline Instant soon() { return in(std::chrono::seconds{10}); }

/// A driver for 127.0.0.1:port; `query` is what the URI has after its '?'.
inline std::shared_ptr<LockDriver> openRedis(std::uint16_t port, const std::string& query = "") {
  StoreRegistry registry;
  redis::use(registry);
  return registry.open("redis://127.0.0.1:" + std::to_string(port) + (query.empty() ? "" : "?" + query));
}

/// A key that nobody else has, with a token.
struct Claimant {
  Token token = Token::generate(*systemRandom());
  std::string key = "key-" + Token::generate(*systemRandom()).hex();

  Claim claim() const { return {key, token, "test:1"}; }
  AcquireRequest request(Instant deadline = soon(), bool resend = false) const {
    return {.claim = claim(), .ttl = longTtl, .deadline = deadline, .resend = resend};
  }
};

inline bool granted(const AcquireResult& result) { return std::holds_alternative<Granted>(result); }

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
