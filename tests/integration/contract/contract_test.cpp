// The suites on every store that there is, in one program: they are long to compile.

#include "lockkeeper/testing/driver_contract.h"
#include "lockkeeper/testing/manager_contract.h"
#include "stores.h"

namespace lockkeeper::testing {
namespace {

std::vector<DriverFactory> onTheirOwnClock() {
  std::vector<DriverFactory> all;
  for (const auto& stores :
       {memoryStores(), redisStores(), legacyStores(), redlockStores(), mysqlStores(), migrationStores()}) {
    all.insert(all.end(), stores.begin(), stores.end());
  }
  return all;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Stores, DriverContract, ::testing::ValuesIn(onTheirOwnClock()), factoryName);
INSTANTIATE_TEST_SUITE_P(Stores, ManagerContract, ::testing::ValuesIn(onTheirOwnClock()), factoryName);
INSTANTIATE_TEST_SUITE_P(Fake, DriverContract, ::testing::Values(memoryOnFakeClock()), factoryName);

}  // namespace lockkeeper::testing
