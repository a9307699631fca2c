// Losses that the server tells.

#include <memory>
#include <optional>

#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/lock_manager.h"
#include "postgres_fixture.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using PostgresLoss = PostgresTest;

// The first renewal would be due in ten minutes.
TEST_F(PostgresLoss, AHolderLearnsSoonThatSomebodyHasBrokenItsLock) {
  LockManager locks(store.open());
  const Lock whole = locks.lock(Claimant{}.key, {.ttl = 30min});
  const Lock share = locks.lockShared(Claimant{}.key, {.ttl = 30min});
  const Lock other = locks.lock(Claimant{}.key, {.ttl = 30min});
  auto* const breaking = capability<Breakable>(*store.direct);
  for (const Lock* each : {&whole, &share}) {
    ASSERT_TRUE(breaking->breakLock(each->key(), soon()));
    EXPECT_TRUE(waitUntil([&] { return each->lost().stop_requested(); }, 5s));
  }
  EXPECT_TRUE(other.valid());
}

}  // namespace
}  // namespace lockkeeper::test
