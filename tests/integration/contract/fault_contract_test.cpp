// The suite of faults on stores of ours.

#include "lockkeeper/testing/fault_contract.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockkeeper/postgres/use.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "postgres_server.h"
#include "redis_server.h"

namespace lockkeeper::test {

using lockkeeper::testing::FaultContract;
using lockkeeper::testing::FaultFactory;
namespace {

/// Made when it is asked for, once.
template <class Server>
class OneServer {
 public:
  Server& get() {
    if (!server_) {
      server_ = std::make_unique<Server>();
      if constexpr (requires { server_->makeLocks(); }) server_->makeLocks();
    }
    return *server_;
  }

 private:
  std::unique_ptr<Server> server_;
};

const std::vector<FaultFactory>& stores() {
  static const std::vector<FaultFactory> factories = [] {
    const auto redisServer = std::make_shared<OneServer<RedisServer>>();
    const auto postgresServer = std::make_shared<OneServer<PostgresServer>>();
    const auto opened = [](const std::string& uri) {
      StoreRegistry registry;
      redis::use(registry);
      postgres::use(registry);
      return registry.open(uri);
    };
    return std::vector<FaultFactory>{
        {.name = "Redis",
         .port = [redisServer] { return redisServer->get().port(); },
         .open =
             [opened](std::uint16_t port) { return opened("redis://127.0.0.1:" + std::to_string(port)); }},
        {.name = "Postgres",
         .port = [postgresServer] { return postgresServer->get().port(); },
         .open =
             [opened](std::uint16_t port) { return opened(PostgresServer::uri("postgres+version", port)); }}};
  }();
  return factories;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Stores, FaultContract, ::testing::ValuesIn(stores()),
                         lockkeeper::testing::faultFactoryName);

}  // namespace lockkeeper::test
