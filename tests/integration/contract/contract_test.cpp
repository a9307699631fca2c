// The suites on every store that there is, in one program: they are long to compile.

#include "lockkeeper/testing/driver_contract.h"
#include "lockkeeper/testing/manager_contract.h"
#include "stores.h"

namespace lockkeeper::test {

using lockkeeper::testing::DriverContract;
using lockkeeper::testing::DriverFactory;
using lockkeeper::testing::factoryName;
using lockkeeper::testing::ManagerContract;
namespace {

// Made once: GoogleTest asks again for each test, and each answer would start servers of its own.
const std::vector<DriverFactory>& onTheirOwnClock() {
  static const std::vector<DriverFactory> factories = [] {
    std::vector<DriverFactory> all;
    for (const auto& stores : {memoryStores(), redisStores(), clusterStores(), legacyStores(),
                               redlockStores(), mysqlStores(), postgresStores(), etcdStores(), migrationStores()}) {
      all.insert(all.end(), stores.begin(), stores.end());
    }
    return all;
  }();
  return factories;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Stores, DriverContract, ::testing::ValuesIn(onTheirOwnClock()), factoryName);
INSTANTIATE_TEST_SUITE_P(Stores, ManagerContract, ::testing::ValuesIn(onTheirOwnClock()), factoryName);
INSTANTIATE_TEST_SUITE_P(Fake, DriverContract, ::testing::Values(memoryOnFakeClock()), factoryName);

}  // namespace lockkeeper::test
