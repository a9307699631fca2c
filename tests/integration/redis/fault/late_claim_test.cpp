// Claims that reach a Redis when their caller has given them up.

#include "late_claim.h"

#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

struct ProxiedRedis {
  RedisServer server;
  FaultProxy proxy{server.port()};
};

LateStore lateStoreAt(const std::string& query, const std::string& scheme = "redis") {
  const auto redis = std::make_shared<ProxiedRedis>();
  LateStore store{.proxied = openRedis(redis->proxy.port(), query, scheme),
                  .direct = openRedis(redis->server.port(), query, scheme),
                  .proxies = {&redis->proxy},
                  .servers = redis};
  const Claimant first{};
  EXPECT_TRUE(granted(store.proxied->acquire(first.request(soon(), true))));
  EXPECT_EQ(store.proxied->release(first.claim(), soon()), ReleaseOutcome::released);
  return store;
}

constexpr LateStoreCase lateRedisStores[] = {
    {"Redis", [] { return lateStoreAt("fence=on"); }, true, true},
    {"RedisWithoutFence", [] { return lateStoreAt("fence=off"); }, false, true},
    {"Legacy", [] { return lateStoreAt("keyPrefix=lock:", "redis+legacy"); }, false, true},
    {"LegacyPure", [] { return lateStoreAt("keyPrefix=lock:&pure=true", "redis+legacy"); }, false, true},
};
INSTANTIATE_TEST_SUITE_P(Stores, LateClaim, ::testing::ValuesIn(lateRedisStores), lateStoreName);

}  // namespace
}  // namespace lockkeeper::test
