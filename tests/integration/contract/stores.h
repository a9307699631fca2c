#pragma once

#include <vector>

#include "lockkeeper/testing/driver_factory.h"

// The stores that the contract suites run on. Their servers start with the first client, live as long as the
// factory, and serve all of its tests.

namespace lockkeeper::test {

using lockkeeper::testing::DriverFactory;

std::vector<DriverFactory> memoryStores();
std::vector<DriverFactory> redisStores();
std::vector<DriverFactory> clusterStores();
std::vector<DriverFactory> legacyStores();
std::vector<DriverFactory> redlockStores();
std::vector<DriverFactory> mysqlStores();
std::vector<DriverFactory> postgresStores();
std::vector<DriverFactory> etcdStores();
std::vector<DriverFactory> migrationStores();

/// On a clock that stands still until it is moved.
DriverFactory memoryOnFakeClock();

}  // namespace lockkeeper::test
