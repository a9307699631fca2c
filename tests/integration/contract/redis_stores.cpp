#include "redis_stores.h"

#include <memory>

#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "stores.h"
#include "tls_files.h"

namespace lockkeeper::testing {

using test::RedisOptions;
using test::RedisServer;
using test::TlsFiles;

const char* const leastPrivileges =
    "user keeper on >let-me-in ~* -@all +@connection +info +set +get +del +pexpire +pttl +time +eval "
    "+evalsha +scan "
    "+wait";

std::string addressOf(const RedisServer& server) { return "127.0.0.1:" + std::to_string(server.port()); }

DriverFactory redisStore(const char* name, RedisOptions options, RedisUri* uri, FencePromise fence) {
  const auto open = [options, uri, server = std::make_shared<std::unique_ptr<RedisServer>>()] {
    if (!*server) *server = std::make_unique<RedisServer>(options);
    StoreRegistry registry;
    redis::use(registry);
    return registry.open(uri(**server));
  };
  return {.name = name, .open = open, .fence = fence, .browsable = true, .breakable = true};
}

std::vector<DriverFactory> redisStores() {
  return {
      redisStore("Tcp", {}, [](const RedisServer& server) { return "redis://" + addressOf(server) + "/3"; }),
      redisStore(
          "WithoutFence", {},
          [](const RedisServer& server) { return "redis://" + addressOf(server) + "?fence=off"; },
          FencePromise::none),
      redisStore("UnixSocket", {.unixSocket = true},
                 [](const RedisServer& server) { return "redis+unix://" + server.unixPath().string(); }),
      redisStore("Tls", {.tls = true},
                 [](const RedisServer& server) {
                   return "rediss://localhost:" + std::to_string(server.tlsPort()) +
                          "?caFile=" + TlsFiles::shared().authority().string();
                 }),
      redisStore("Password", {.password = "open/sesame"},
                 [](const RedisServer& server) { return "redis://:open%2Fsesame@" + addressOf(server); }),
      redisStore("AclUser", {.password = "not-for-you", .users = {leastPrivileges}},
                 [](const RedisServer& server) { return "redis://keeper:let-me-in@" + addressOf(server); }),
  };
}

}  // namespace lockkeeper::testing
