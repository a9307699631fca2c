#include "redis_stores.h"
#include "stores.h"

namespace lockkeeper::test {

using lockkeeper::testing::DriverFactory;
namespace {

DriverFactory legacy(const char* name, RedisOptions options, RedisUri* uri) {
  DriverFactory factory = redisStore(name, std::move(options), uri, FencePromise::none);
  factory.expirySlack = std::chrono::milliseconds{2500};  // whole seconds, rounded up generously
  factory.goneIsUncertain = true;
  factory.permits = false;
  return factory;
}

}  // namespace

std::vector<DriverFactory> legacyStores() {
  return {
      // With the least rights, and among locks of another prefix.
      legacy("Legacy", {.password = "not-for-you", .users = {leastPrivileges}},
             [](const RedisServer& server) {
               return "redis+legacy://keeper:let-me-in@" + addressOf(server) + "?keyPrefix=lock:";
             }),
      legacy("LegacyPure", {},
             [](const RedisServer& server) {
               return "redis+legacy://" + addressOf(server) + "/2?keyPrefix=lock%3A&pure=true";
             }),
  };
}

}  // namespace lockkeeper::test
