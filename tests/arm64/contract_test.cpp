// The suites on memory and on Redis. The server is this machine's own.

#include "lockkeeper/testing/driver_contract.h"
#include "lockkeeper/testing/manager_contract.h"
#include "stores.h"

namespace lockkeeper::test {

using lockkeeper::testing::DriverContract;
using lockkeeper::testing::DriverFactory;
using lockkeeper::testing::factoryName;
using lockkeeper::testing::ManagerContract;
namespace {

const std::vector<DriverFactory>& memoryAndRedis() {
  static const std::vector<DriverFactory> factories = [] {
    std::vector<DriverFactory> all = memoryStores();
    const auto redis = redisStores();
    all.insert(all.end(), redis.begin(), redis.end());
    return all;
  }();
  return factories;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Stores, DriverContract, ::testing::ValuesIn(memoryAndRedis()), factoryName);
INSTANTIATE_TEST_SUITE_P(Stores, ManagerContract, ::testing::ValuesIn(memoryAndRedis()), factoryName);
INSTANTIATE_TEST_SUITE_P(Fake, DriverContract, ::testing::Values(memoryOnFakeClock()), factoryName);

}  // namespace lockkeeper::test
