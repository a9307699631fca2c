#pragma once

#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/testing/contract/driver_fixture.h"

namespace lockkeeper::testing {

TEST_P(DriverContract, HasTheCapabilitiesThatItsFactoryNames) {
  EXPECT_EQ(capability<Waitable>(*driver) != nullptr, GetParam().waitable);
  EXPECT_EQ(capability<Browsable>(*driver) != nullptr, GetParam().browsable);
  EXPECT_EQ(capability<Breakable>(*driver) != nullptr, GetParam().breakable);
  EXPECT_EQ(capability<LossReporting>(*driver) != nullptr, GetParam().reportsLosses);
  EXPECT_EQ(capability<Postable>(*driver) != nullptr, GetParam().postable);
  EXPECT_EQ(capability<Permits>(*driver) != nullptr, GetParam().permits);
  EXPECT_EQ(capability<WaiterBrowsable>(*driver) != nullptr, GetParam().showsWaiters);
  EXPECT_EQ(capability<Batchable>(*driver) != nullptr, GetParam().batchable);
  EXPECT_EQ(capability<BatchReleasing>(*driver) != nullptr, GetParam().batchReleasing);
}

}  // namespace lockkeeper::testing
