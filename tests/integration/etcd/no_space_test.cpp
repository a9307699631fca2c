// A cluster that has no room left (the alarm NOSPACE), and takes no new keys.

#include "etcd_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class EtcdNoSpace : public ::testing::Test {
 protected:
  // As when its quota is used up; 1 is NOSPACE.
  void alarm(const std::string& action) const {
    (void)cluster.request("/v3/maintenance/alarm", R"({"action":")" + action + R"(","alarm":"NOSPACE"})");
  }

  EtcdCluster cluster{{.nodes = 1}};
  const std::shared_ptr<LockDriver> driver = openEtcd(cluster.uri());
};

TEST_F(EtcdNoSpace, GrantsNothingAndSaysWhyAndRenewsAndReleasesWhatIsHeld) {
  LockManager locks(driver);
  Lock held = locks.lock("held", {.ttl = 1s});
  alarm("ACTIVATE");
  try {
    (void)driver->acquire(Claimant{}.request());
    FAIL() << "no error";
  } catch (const StoreUnavailable& error) {
    EXPECT_NE(std::string(error.what()).find("database space exceeded"), std::string::npos) << error.what();
  }
  // For longer than a lease, which etcd makes two seconds long at least.
  EXPECT_FALSE(waitUntil([&] { return !held.valid(); }, 4s));
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_FALSE(driver->holder("held", soon()));
  alarm("DEACTIVATE");
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
}

}  // namespace
}  // namespace lockkeeper::test
