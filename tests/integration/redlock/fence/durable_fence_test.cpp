// A quorum of real Redis servers for the locks, and a row of a real MariaDB for their fences.

#include "database_server.h"
#include "lockkeeper/mysql/use.h"
#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class DurablyFencedRedlock : public ::testing::Test {
 protected:
  std::shared_ptr<LockDriver> open() const {
    StoreRegistry registry;
    redis::use(registry);
    mysql::use(registry);
    std::vector<std::uint16_t> ports;
    for (const RedisServer& node : nodes) ports.push_back(node.port());
    const std::string fences = "mysql%3A%2F%2Fshop%3Ap%2540ss%252Fword%40127.0.0.1%3A" +
                               std::to_string(database.port()) + "%2F" + name +
                               "%3FcreateTable%3Dtrue%26connectTimeout%3D1s%26ioTimeout%3D1s";
    return registry.open(redlockUri(ports, std::string(withoutGuard) + "&fenceStore=" + fences));
  }
  /// The fence of a grant that is given back at once.
  static Fence grant(LockDriver& driver, const std::string& key) {
    Claimant who;
    who.key = key;
    const AcquireResult result = driver.acquire(who.request());
    if (!granted(result)) throw std::runtime_error("the key is busy");
    EXPECT_EQ(driver.release(who.claim(), soon()), ReleaseOutcome::released);
    return std::get<Granted>(result).fence.value();
  }
  /// The same, as soon as the stores are there again.
  static Fence grantAgain(LockDriver& driver, const std::string& key) {
    std::optional<Fence> fence;
    EXPECT_TRUE(waitUntil([&] {
      try {
        fence = grant(driver, key);
      } catch (const Error&) {
      }
      return fence.has_value();
    }));
    return fence.value_or(0);
  }
  void expectNoFence(LockDriver& driver) const {
    const Claimant who{};
    const Instant deadline = in(2s);
    try {
      (void)driver.acquire(who.request(deadline));
      ADD_FAILURE() << "granted without a fence";
    } catch (const StoreUnavailable& fault) {
      const std::string said = fault.what();
      EXPECT_NE(said.find("no fence, so the grant was given back: mysql://127.0.0.1:"), std::string::npos)
          << said;
      EXPECT_EQ(said.find("p@ss"), std::string::npos) << said;
    }
    EXPECT_LT(now(), deadline + 1s + schedulingSlack);
    for (const RedisServer& node : nodes) {
      EXPECT_TRUE(waitUntil([&] { return node.command({"EXISTS", who.key}) == "0"; }));
    }
  }

  std::array<RedisServer, 3> nodes;
  DatabaseServer database{Brand::mariadb};
  const std::string name = database.newDatabase();
};

TEST_F(DurablyFencedRedlock, FencesIncreaseWhateverTheNodesForget) {
  const auto driver = open();
  Fence last = 0;
  const auto increases = [&](Fence next) {
    EXPECT_GT(next, last);
    last = next;
  };
  for (int i = 0; i < 10; ++i) increases(grant(i % 2 == 0 ? *driver : *open(), "k"));
  EXPECT_EQ(driver->promises().fence, FencePromise::durable)
      << "now that the server has said how it is set up";
  for (RedisServer& node : nodes) node.restart();
  increases(grantAgain(*driver, "k"));
  increases(grantAgain(*open(), "k"));
  database.restart();
  increases(grantAgain(*driver, "k"));
  Claimant holder;
  holder.key = "k";
  const AcquireResult held = driver->acquire(holder.request());
  ASSERT_TRUE(granted(held));
  increases(std::get<Granted>(held).fence.value());
  EXPECT_EQ(open()->holder("k", soon())->fence, last) << "others see it";
}

TEST_F(DurablyFencedRedlock, WithoutTheCounterThereIsNoGrantAndNothingIsLeftOnTheNodes) {
  const auto driver = open();
  const Fence before = grant(*driver, "k");
  database.pause();
  expectNoFence(*driver);
  database.resume();
  database.kill();
  expectNoFence(*driver);
  expectNoFence(*open());
  database.restart();
  EXPECT_GT(grantAgain(*driver, "k"), before);
}

}  // namespace
}  // namespace lockkeeper::test
