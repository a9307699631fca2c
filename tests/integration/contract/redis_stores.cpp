#include "redis_stores.h"

#include <functional>
#include <memory>

#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "sentinel_group.h"
#include "stores.h"
#include "tls_files.h"

namespace lockkeeper::test {

using lockkeeper::testing::DriverFactory;

const char* const leastPrivileges =
    "user keeper on >let-me-in ~* -@all +@connection +info +set +get +incr +del +pexpire +pttl +time +eval "
    "+evalsha +scan "
    "+wait +exists +zadd +zrange +zrem +zscore +hget +hset +hdel +publish +subscribe resetchannels "
    "&lockkeeper:*";

namespace {

using Server = std::function<RedisServer&()>;

/// Starts it when it is asked for.
Server serverWith(RedisOptions options) {
  return [options = std::move(options),
          server = std::make_shared<std::unique_ptr<RedisServer>>()]() -> RedisServer& {
    if (!*server) *server = std::make_unique<RedisServer>(options);
    return **server;
  };
}

DriverFactory storeOnServer(const char* name, RedisUri* uri, FencePromise fence, const Server& server) {
  const auto open = [uri, server] {
    StoreRegistry registry;
    redis::use(registry);
    return registry.open(withLongTimeouts(uri(server())));
  };
  return {.name = name, .open = open, .fence = fence, .browsable = true, .breakable = true, .permits = true};
}

// In every database that the stores use.
constexpr const char* countQueued =
    "local count = 0 "
    "for _, database in ipairs({0, 3}) do redis.call('SELECT', database) "
    "for _, key in ipairs(redis.call('KEYS', '*:lockkeeper:queue*')) do count = count + redis.call('ZCARD', "
    "key) end end "
    "return count";

// As scripts/queue/queue.lua has it: it should look in four seconds, and polls, so that nothing but its
// silence shows that it is dead.
constexpr const char* addWaiter =
    "for _, database in ipairs({0, 3}) do redis.call('SELECT', database) "
    "if redis.call('EXISTS', ARGV[1]) == 1 then "
    "redis.call('ZADD', '{' .. ARGV[1] .. '}:lockkeeper:queue', 1, 'dead') "
    "redis.call('HSET', '{' .. ARGV[1] .. '}:lockkeeper:waiters', 'dead', "
    "string.format('%.0f 1 1000 0 ', redis.call('TIME')[1] * 1000 + 4000)) "
    "end end return 1";

/// With what the suite needs to know of the queues on `server`.
DriverFactory withQueues(DriverFactory factory, const Server& server) {
  factory.waitable = true;
  factory.showsWaiters = true;
  factory.postable = true;
  factory.batchable = true;
  factory.queued = [server] { return std::stoul(server().command({"EVAL", countQueued, "0"})); };
  factory.placeKeptFor = std::chrono::seconds{5};
  factory.addDeadWaiter = [server](const std::string& key) {
    server().command({"EVAL", addWaiter, "0", key});
  };
  factory.endWakeUps = [server] { server().command({"CLIENT", "KILL", "TYPE", "pubsub"}); };
  factory.requests = [server]() -> std::size_t {
    const std::string info = server().command({"INFO", "commandstats"});
    const std::string field = "cmdstat_evalsha:calls=";
    const std::size_t at = info.find(field);
    return at == std::string::npos ? 0 : std::stoul(info.substr(at + field.size()));
  };
  factory.longestPause = std::chrono::seconds{6};
  return factory;
}

DriverFactory redisQueue(const char* name, RedisOptions options, RedisUri* uri,
                         FencePromise fence = FencePromise::whileStoreKeepsWrites) {
  const Server server = serverWith(std::move(options));
  return withQueues(storeOnServer(name, uri, fence, server), server);
}

// A master alone: what replicas are for is tested elsewhere.
DriverFactory sentinelStore() {
  const auto group = std::make_shared<std::unique_ptr<SentinelGroup>>();
  const auto running = [group]() -> SentinelGroup& {
    if (!*group) *group = std::make_unique<SentinelGroup>(SentinelGroupOptions{.replicas = 0});
    return **group;
  };
  const auto open = [running] {
    StoreRegistry registry;
    redis::use(registry);
    return registry.open(withLongTimeouts(running().uri()));
  };
  return withQueues({.name = "Sentinel",
                     .open = open,
                     .fence = FencePromise::whileStoreKeepsWrites,
                     .browsable = true,
                     .breakable = true,
                     .permits = true},
                    [running]() -> RedisServer& { return running().first(); });
}

}  // namespace

std::string withLongTimeouts(const std::string& uri) {
  return uri + (uri.find('?') == std::string::npos ? '?' : '&') + "connectTimeout=10s&ioTimeout=10s";
}

std::string addressOf(const RedisServer& server) { return "127.0.0.1:" + std::to_string(server.port()); }

DriverFactory redisStore(const char* name, RedisOptions options, RedisUri* uri, FencePromise fence) {
  return storeOnServer(name, uri, fence, serverWith(std::move(options)));
}

std::vector<DriverFactory> redisStores() {
  return {
      redisQueue("Tcp", {}, [](const RedisServer& server) { return "redis://" + addressOf(server) + "/3"; }),
      redisQueue(
          "WithoutFence", {},
          [](const RedisServer& server) { return "redis://" + addressOf(server) + "?fence=off"; },
          FencePromise::none),
      redisQueue("UnixSocket", {.unixSocket = true},
                 [](const RedisServer& server) { return "redis+unix://" + server.unixPath().string(); }),
      redisQueue("Tls", {.tls = true},
                 [](const RedisServer& server) {
                   return "rediss://localhost:" + std::to_string(server.tlsPort()) +
                          "?caFile=" + TlsFiles::shared().authority().string();
                 }),
      redisQueue("Password", {.password = "open/sesame"},
                 [](const RedisServer& server) { return "redis://:open%2Fsesame@" + addressOf(server); }),
      sentinelStore(),
      redisQueue("AclUser", {.password = "not-for-you", .users = {leastPrivileges}},
                 [](const RedisServer& server) { return "redis://keeper:let-me-in@" + addressOf(server); }),
  };
}

}  // namespace lockkeeper::test
