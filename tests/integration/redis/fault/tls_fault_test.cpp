#include "operation.h"
#include "redis_fixture.h"
#include "tls_files.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using Kind = ProxyFault::Kind;

/// The same faults below an encrypted connection, where bytes are not yet replies.
class TlsFault : public ::testing::Test {
 protected:
  std::shared_ptr<LockDriver> openProxied(const std::string& query = "") const {
    StoreRegistry registry;
    redis::use(registry);
    return registry.open("rediss://localhost:" + std::to_string(proxy.port()) +
                         "?caFile=" + TlsFiles::shared().authority().string() + query);
  }

  RedisServer server{{.tls = true}};
  FaultProxy proxy{server.tlsPort()};
  const std::shared_ptr<LockDriver> direct = openRedis(server.port());
};

TEST_F(TlsFault, NoCutOfTheGreetingYieldsAGrant) {
  constexpr std::size_t step = 13;  // A handshake costs too much to cut at each of its bytes.
  constexpr std::size_t longestGreeting = 40000;
  std::size_t cuts = 0;
  for (std::size_t bytes = 0; bytes < longestGreeting; bytes += step) {
    SCOPED_TRACE("cut after " + std::to_string(bytes) + " bytes");
    const auto driver = openProxied();
    const Claimant who{};
    proxy.cutReplies(bytes, bytes % 2 == 0 ? Ending::fin : Ending::rst);
    try {
      const AcquireResult result = driver->acquire(who.request());
      ASSERT_EQ(proxy.fired(), 0U);
      EXPECT_TRUE(granted(result));
      EXPECT_GT(cuts, 200U);
      return;
    } catch (const StoreUnavailable&) {
      ASSERT_FALSE(direct->holder(who.key, soon())) << "the driver said that nothing was done";
    } catch (const OutcomeUnknown&) {
    }
    ASSERT_EQ(proxy.fired(), 1U);
    ++cuts;
  }
  FAIL() << "the greeting never passed whole";
}

TEST_F(TlsFault, NoCutOfAReplyYieldsAGrant) {
  const auto driver = openProxied();
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  std::size_t cuts = 0;
  for (std::size_t bytes = 0; bytes < 1000; ++bytes, ++cuts) {
    const Claimant who{};
    (void)driver->holder("connects again", soon());
    proxy.cutReplies(bytes, bytes % 2 == 0 ? Ending::fin : Ending::rst);
    try {
      const AcquireResult result = driver->acquire(who.request());
      ASSERT_EQ(proxy.fired(), 0U);
      EXPECT_EQ(std::get<Granted>(result).fence, direct->holder(who.key, soon())->fence);
      EXPECT_GT(cuts, 20U);
      return;
    } catch (const OutcomeUnknown&) {
      ASSERT_EQ(proxy.fired(), 1U);
    }
  }
  FAIL() << "the reply never passed whole";
}

TEST_F(TlsFault, EveryCallReturnsByItsDeadline) {
  for (const ProxyFault& fault :
       {ProxyFault{.kind = Kind::blackhole}, ProxyFault{.kind = Kind::drip, .pause = 50ms},
        ProxyFault{.kind = Kind::flood, .text = "garbage"}}) {
    for (const bool whileConnecting : {true, false}) {
      SCOPED_TRACE(static_cast<int>(fault.kind));
      SCOPED_TRACE(whileConnecting ? "connecting" : "connected");
      const auto driver = openProxied(std::string("&") + shortTimeouts);
      if (!whileConnecting) {
        ASSERT_TRUE(waitUntil(
            [&] { return attempt(operations()[0], *driver, Claimant{}, soon()).find("error") != 0; }));
      }
      proxy.set(fault);
      const Instant deadline = in(200ms);
      const std::string said = attempt(operations()[0], *driver, Claimant{}, deadline);
      EXPECT_LT(now(), deadline + shortIoTimeout + schedulingSlack);
      EXPECT_EQ(said.find("error: "), 0U) << said;
      EXPECT_GE(proxy.fired(), 1U);
      proxy.passThrough();
    }
  }
}

}  // namespace
}  // namespace lockkeeper::test
