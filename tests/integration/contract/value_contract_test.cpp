// The contract of values on every store that keeps them.

#include "lockkeeper/testing/value_contract.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockkeeper/postgres/use.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "postgres_server.h"
#include "redis_cluster.h"
#include "redis_server.h"

namespace lockkeeper::test {

using lockkeeper::testing::ValueContract;
using lockkeeper::testing::ValueFactory;
using lockkeeper::testing::valueFactoryName;
namespace {

/// The server starts with the first client, lives as long as the factory, and serves all of its tests.
template <class Server>
ValueFactory on(std::string name, const std::function<std::string(const Server&)>& uriOf) {
  const auto server = std::make_shared<std::unique_ptr<Server>>();
  return {.name = std::move(name), .open = [server, uriOf] {
            if (!*server) *server = std::make_unique<Server>();
            StoreRegistry registry;
            redis::use(registry);
            postgres::use(registry);
            return registry.openValues(uriOf(**server));
          }};
}

struct PostgresOfValues : PostgresServer {
  PostgresOfValues() { makeLocks(); }
};

/// All clients of one memory store are one object.
ValueFactory inMemory() {
  const auto values = StoreRegistry().openValues("memory:");
  return {.name = "Memory", .open = [values] { return values; }};
}

const auto& stores = *new auto(::testing::ValuesIn(std::vector<ValueFactory>{
    inMemory(), on<RedisServer>("Redis", [](const auto& server) { return server.uri(); }),
    on<RedisCluster>("Cluster", [](const auto& cluster) { return cluster.uri(); }),
    on<PostgresOfValues>("Postgres", [](const auto& server) {
      return server.uri("postgres+version") + "?connectTimeout=10s";
    })}));

INSTANTIATE_TEST_SUITE_P(Stores, ValueContract, stores, valueFactoryName);

}  // namespace
}  // namespace lockkeeper::test
