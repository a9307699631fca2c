#pragma once

#include <string>

#include "lockkeeper/testing/driver_factory.h"
#include "redis_server.h"

namespace lockkeeper::test {

using lockkeeper::testing::DriverFactory;

using RedisUri = std::string(const RedisServer&);

/// A store on one Redis server, started with `options`, under the URI that `uri` gives it.
DriverFactory redisStore(const char* name, RedisOptions options, RedisUri* uri,
                         FencePromise fence = FencePromise::whileStoreKeepsWrites);

/// The URI, with timeouts that a busy machine does not reach.
std::string withLongTimeouts(const std::string& uri);

std::string addressOf(const RedisServer& server);

/// What the driver says that a user needs, and nothing else: user "keeper", password "let-me-in".
extern const char* const leastPrivileges;

}  // namespace lockkeeper::test
