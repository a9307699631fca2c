#pragma once

#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/testing/contract/driver_fixture.h"

namespace lockkeeper::testing {

TEST_P(DriverContract, HasTheCapabilitiesThatItsFactoryNames) {
  EXPECT_EQ(dynamic_cast<Waitable*>(driver.get()) != nullptr, GetParam().waitable);
  EXPECT_EQ(dynamic_cast<Browsable*>(driver.get()) != nullptr, GetParam().browsable);
  EXPECT_EQ(dynamic_cast<Breakable*>(driver.get()) != nullptr, GetParam().breakable);
}

}  // namespace lockkeeper::testing
