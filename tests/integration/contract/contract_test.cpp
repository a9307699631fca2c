// Every store that there is, in one program: the suites are long to compile.

#include <memory>
#include <string>

#include "lockkeeper/memory_driver.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "lockkeeper/testing/driver_contract.h"
#include "lockkeeper/testing/fake_clock.h"
#include "lockkeeper/testing/manager_contract.h"
#include "redis_server.h"
#include "tls_files.h"

namespace lockkeeper::testing {
namespace {

/// Each call gives stores of its own, so all clients of one store are one object.
DriverFactory memory(std::string name, std::shared_ptr<Clock> clock) {
  return {.name = std::move(name),
          .open = [driver = std::make_shared<MemoryDriver>(clock)] { return driver; },
          .fence = FencePromise::whileStoreKeepsWrites,
          .waitable = true,
          .browsable = true,
          .breakable = true,
          .clock = clock};
}

DriverFactory memoryOnFakeClock() {
  const auto clock = std::make_shared<FakeClock>();
  DriverFactory factory = memory("FakeClock", clock);
  factory.advance = [clock](std::chrono::milliseconds length) { clock->advance(length); };
  factory.queued = [clock] { return clock->waiters(); };
  return factory;
}

DriverFactory memoryOnSystemClock() { return memory("SystemClock", systemClock()); }

using test::RedisOptions;
using test::RedisServer;
using test::TlsFiles;

/// What the driver says that a user needs, and nothing else.
constexpr const char* leastPrivileges =
    "user keeper on >let-me-in ~* -@all +@connection +info +set +get +del +pexpire +pttl +time +eval "
    "+evalsha +scan "
    "+wait";

using Uri = std::string(const RedisServer&);

DriverFactory redis(const char* name, RedisOptions options, Uri* uri,
                    FencePromise fence = FencePromise::whileStoreKeepsWrites) {
  // The server starts with the first client, lives as long as the factory, and serves all of its tests.
  const auto open = [options, uri, server = std::make_shared<std::unique_ptr<RedisServer>>()] {
    if (!*server) *server = std::make_unique<RedisServer>(options);
    StoreRegistry registry;
    lockkeeper::redis::use(registry);
    return registry.open(uri(**server));
  };
  return {.name = name, .open = open, .fence = fence, .browsable = true, .breakable = true};
}

std::string address(const RedisServer& server) { return "127.0.0.1:" + std::to_string(server.port()); }

DriverFactory tcp() {
  return redis("Tcp", {}, [](const RedisServer& server) { return "redis://" + address(server) + "/3"; });
}
DriverFactory withoutFence() {
  return redis(
      "WithoutFence", {},
      [](const RedisServer& server) { return "redis://" + address(server) + "?fence=off"; },
      FencePromise::none);
}
DriverFactory unixSocket() {
  return redis("UnixSocket", {.unixSocket = true},
               [](const RedisServer& server) { return "redis+unix://" + server.unixPath().string(); });
}
DriverFactory tls() {
  return redis("Tls", {.tls = true}, [](const RedisServer& server) {
    return "rediss://localhost:" + std::to_string(server.tlsPort()) +
           "?caFile=" + TlsFiles::shared().authority().string();
  });
}
DriverFactory password() {
  return redis("Password", {.password = "open/sesame"},
               [](const RedisServer& server) { return "redis://:open%2Fsesame@" + address(server); });
}
DriverFactory aclUser() {
  return redis("AclUser", {.password = "not-for-you", .users = {leastPrivileges}},
               [](const RedisServer& server) { return "redis://keeper:let-me-in@" + address(server); });
}

const auto onTheirOwnClock = ::testing::Values(memoryOnSystemClock(), tcp(), withoutFence(), unixSocket(),
                                               tls(), password(), aclUser());

}  // namespace

INSTANTIATE_TEST_SUITE_P(Stores, DriverContract, onTheirOwnClock, factoryName);
INSTANTIATE_TEST_SUITE_P(Stores, ManagerContract, onTheirOwnClock, factoryName);
INSTANTIATE_TEST_SUITE_P(Fake, DriverContract, ::testing::Values(memoryOnFakeClock()), factoryName);

}  // namespace lockkeeper::testing
