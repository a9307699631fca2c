#include "operation.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using Kind = ProxyFault::Kind;

/// A server, or what stands before it, that answers slowly, wrongly, without end or not at all.
class HostileServer : public RedisFaultTest {
 protected:
  /// No operation may come back with an answer, nor much later than its deadline, nor break what follows.
  void isNotBelieved(const ProxyFault& fault, bool whileConnecting) {
    for (const Operation& operation : operations()) {
      SCOPED_TRACE(operation.name);
      const auto driver = openProxied(shortTimeouts);
      const Claimant who{};
      operation.prepare(*direct, who);
      if (!whileConnecting) {
        ASSERT_NE(attempt(operations().back(), *driver, Claimant{}, soon()).find("error"), 0U);
        (void)attempt(operation, *driver, Claimant{}, soon());
      }
      proxy.set(fault);
      const Instant deadline = in(200ms);
      const std::string said = attempt(operation, *driver, who, deadline);
      EXPECT_LT(now(), deadline + shortIoTimeout + schedulingSlack);
      EXPECT_EQ(said.find("error: "), 0U) << said;
      EXPECT_GE(proxy.fired(), 1U) << "the fault hit nothing";
      proxy.passThrough();
      const Claimant next{};
      ASSERT_TRUE(
          waitUntil([&] { return attempt(operations()[0], *driver, next, soon()).find("error") != 0; }));
      EXPECT_EQ(driver->release(next.claim(), soon()), ReleaseOutcome::released);
    }
  }
};

TEST_F(HostileServer, SlowDrip) {
  isNotBelieved({.kind = Kind::drip, .pause = 100ms}, false);
  isNotBelieved({.kind = Kind::drip, .pause = 100ms}, true);
}

TEST_F(HostileServer, SilenceAfterTheRequest) {
  isNotBelieved({.kind = Kind::dropReplies}, false);
  isNotBelieved({.kind = Kind::blackhole}, false);
}

TEST_F(HostileServer, SilenceFromTheStart) { isNotBelieved({.kind = Kind::blackhole}, true); }

TEST_F(HostileServer, ReplyThatComesAfterTheDeadline) {
  isNotBelieved({.kind = Kind::delay, .pause = 900ms}, false);
}

class EndlessReply : public HostileServer, public ::testing::WithParamInterface<std::string> {};

TEST_P(EndlessReply, IsEnded) {
  isNotBelieved({.kind = Kind::flood, .text = GetParam()}, false);
  isNotBelieved({.kind = Kind::flood, .text = GetParam()}, true);
}

INSTANTIATE_TEST_SUITE_P(Texts, EndlessReply,
                         ::testing::Values("1", "*1\r\n", "$999999999\r\n", "*999999999\r\n", "+", "$-5\r\n",
                                           "\r\n", "HTTP/1.1 200 OK\r\n\r\n", std::string(1, '\0'), "-ERR ",
                                           "~1\r\n"));

class WrongReply : public RedisFaultTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(WrongReply, IsNoGrantAndEndsTheConnection) {
  const auto driver = openProxied();
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  const std::size_t connections = proxy.connections();
  const Claimant who{};
  proxy.set({.kind = Kind::replace, .text = GetParam()});
  EXPECT_THROW((void)driver->acquire(who.request()), Error);
  EXPECT_EQ(proxy.fired(), 1U);
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released) << "the server had granted it";
  EXPECT_EQ(proxy.connections(), connections + 1) << "a connection in doubt must not be used again";
}

INSTANTIATE_TEST_SUITE_P(Texts, WrongReply,
                         ::testing::Values("+OK\r\n", "$2\r\nOK\r\n", ":1\r\n", "$-1\r\n", "*-1\r\n",
                                           "*0\r\n", "*1\r\n:1\r\n", "*2\r\n:1\r\n:0\r\n",
                                           "*2\r\n:1\r\n:-7\r\n", "*2\r\n:2\r\n:9\r\n",
                                           "*2\r\n:1\r\n$1\r\n9\r\n", "*3\r\n:1\r\n:9\r\n:9\r\n",
                                           "*2\r\n:1\r\n:99999999999999999999\r\n", "*2\r\n:1\r\n: 9\r\n",
                                           "*2\r\n:1\r\n:9\n", ":999999999999\r\n", "$1000000000\r\n"));

}  // namespace
}  // namespace lockkeeper::test
