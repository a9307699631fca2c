// Connections that break, servers that stand still, and processes that fork.

#include "etcd_fixture.h"
#include "fault_proxy.h"
#include "forked_child.h"
#include "frozen_server.h"
#include "inherited_driver.h"
#include "operation.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

EtcdCluster& shared() {
  static EtcdCluster one({.nodes = 1});
  return one;
}

class EtcdCutReplies : public ::testing::TestWithParam<Operation> {};

/// Cuts them after 0, `step`, … bytes, until they pass whole.
void cutReplies(const Operation& operation, const std::optional<Share>& share, std::size_t step) {
  FaultProxy proxy(shared().port(0));
  const auto driver = openEtcd(etcdUri(proxy.port()));
  const auto direct = openEtcd(shared().uri());
  constexpr std::size_t longestReply = 5000;
  std::size_t doubts = 0;
  for (std::size_t bytes = 0; bytes < longestReply; bytes += step) {
    SCOPED_TRACE("cut after " + std::to_string(bytes) + " bytes");
    Claimant who{};
    who.share = share;
    operation.prepare(*direct, who);
    proxy.cutReplies(bytes, bytes % 2 == 0 ? Ending::fin : Ending::rst);
    const std::string said = attempt(operation, *driver, who, soon());
    const bool cut = proxy.fired() > 0;
    const std::string expected = operation.expected(*direct, who);
    if (said == std::string("error: ") + toString(ErrorCode::outcomeUnknown)) {
      ++doubts;
      EXPECT_TRUE(operation.changesTheStore);
      EXPECT_TRUE(cut);
    } else if (said == std::string("error: ") + toString(ErrorCode::storeUnavailable)) {
      EXPECT_TRUE(cut);
      EXPECT_NE(expected.substr(0, 8), "granted " + std::string(expected.size() > 8 ? "" : "0"));
    } else {
      EXPECT_EQ(said, expected) << "a call that was not applied is made again";
    }
    if (!cut) {
      EXPECT_GT(bytes, 100U);
      if (operation.changesTheStore && operation.name != std::string("RenewLost") &&
          operation.name != std::string("RenewHeld") &&
          (!share || operation.name != std::string("AcquireBusy"))) {
        EXPECT_GT(doubts, 50 / step);
      }
      return;
    }
  }
  FAIL() << "the replies never passed whole";
}

TEST_P(EtcdCutReplies, AreNeverTakenForAnswers) { cutReplies(GetParam(), std::nullopt, 5); }

TEST_P(EtcdCutReplies, OfSharesAreNeverTakenForAnswers) { cutReplies(GetParam(), Share{2, 3}, 15); }

INSTANTIATE_TEST_SUITE_P(Operations, EtcdCutReplies, ::testing::ValuesIn(operations()), operationName);

TEST(EtcdDoubt, ResendingAfterALostReplyGivesTheGrantThatWasMade) {
  FaultProxy proxy(shared().port(0));
  const auto driver = openEtcd(etcdUri(proxy.port()));
  const auto direct = openEtcd(shared().uri());
  ASSERT_FALSE(driver->holder("connects", soon()));
  std::size_t doubts = 0;
  for (std::size_t bytes = 0; doubts == 0; bytes += 20) {
    ASSERT_LT(bytes, 5000U);
    const Claimant who{};
    proxy.cutReplies(bytes, Ending::rst);
    try {
      (void)driver->acquire(who.request());
      proxy.passThrough();
    } catch (const OutcomeUnknown&) {
      ++doubts;
      ASSERT_TRUE(waitUntil([&] { return direct->holder(who.key, soon()).has_value(); }));
      const auto fence = direct->holder(who.key, soon())->fence;
      const AcquireResult again = driver->acquire(who.request(soon(), true));
      ASSERT_TRUE(granted(again));
      EXPECT_EQ(std::get<Granted>(again).fence, fence);
    }
    EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  }
}

std::string reply(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(EtcdDoubt, AReplyThatNobodyAskedForIsNotTheNextOne) {
  FaultProxy proxy(shared().port(0));
  const auto driver = openEtcd(etcdUri(proxy.port()));
  const Claimant who{};
  proxy.set(
      {.kind = ProxyFault::Kind::replace,
       .text = reply(R"({"header":{"revision":"6"},"ID":"12345","TTL":"600"})") +
               reply(R"({"header":{"revision":"7"},"succeeded":true,"responses":[{"response_put":{}}]})")});
  EXPECT_THROW((void)driver->acquire(who.request()), StoreUnavailable) << "there is no such lease";
  EXPECT_EQ(proxy.fired(), 1U);
}

TEST(EtcdDoubt, ARenewalThatIsAnsweredForAnotherLeaseIsNone) {
  FaultProxy proxy(shared().port(0));
  const auto direct = openEtcd(shared().uri());
  const Claimant who{};
  ASSERT_TRUE(granted(direct->acquire(who.request())));
  for (const char* body : {R"({"result":{"ID":"12345","TTL":"600"}})", "{}"}) {
    const auto driver = openEtcd(etcdUri(proxy.port()));
    ASSERT_TRUE(driver->holder(who.key, soon()));
    // The answer to the look comes first.
    proxy.set({.kind = ProxyFault::Kind::replace, .text = reply(body), .requests = 1});
    Renewal renewal{.claim = who.claim(), .ttl = longTtl};
    driver->renew({&renewal, 1}, soon());
    EXPECT_EQ(renewal.outcome, RenewOutcome::unknown) << renewal.cause;
    EXPECT_EQ(proxy.fired(), 1U);
  }
  EXPECT_EQ(direct->release(who.claim(), soon()), ReleaseOutcome::released);
}

class EtcdFrozen : public ::testing::Test {
 protected:
  EtcdCluster server{{.nodes = 1}};
  const std::shared_ptr<LockDriver> direct = openEtcd(server.uri());
  const FreezableStore store{
      .open = [this] { return openEtcd(server.uri() + "?connectTimeout=300ms&ioTimeout=300ms"); },
      .timeouts = 600ms,
      .direct = direct,
      .isFree = [this](const std::string& key) { return !direct->holder(key, soon()); },
      .freeze = [this] { server.pause(0); },
      .thaw = [this] { server.resume(0); }};
};

TEST_F(EtcdFrozen, CallsEndByTheirDeadlineAndSayWhatMayHaveBeenDone) {
  for (const Operation& operation : operations()) {
    SCOPED_TRACE(operation.name);
    const auto driver = store.open();
    const Claimant who{};
    operation.prepare(*direct, who);
    (void)driver->holder(who.key, soon());
    server.pause(0);
    const Instant deadline = in(attemptTime);
    const std::string said = attempt(operation, *driver, who, deadline);
    EXPECT_LT(now(), deadline + store.timeouts + schedulingSlack);
    server.resume(0);
    EXPECT_EQ(said.find("error: "), 0U) << said;
    if (said == std::string("error: ") + toString(ErrorCode::storeUnavailable) && operation.changesTheStore) {
      // Asked often, so that what the server had been sent is done by then.
      for (int round = 0; round < 20 && std::string(operation.name) == "AcquireFree"; ++round) {
        EXPECT_FALSE(direct->holder(who.key, soon()));
      }
    }
  }
}

TEST_F(EtcdFrozen, UnderLoadAllCallsEndByTheirDeadlines) { freezeUnderLoad(store); }

TEST_F(EtcdFrozen, AClaimThatWasGivenUpMeanwhileDoesNotKeepTheKey) { freezeBeforeAClaim(store); }

TEST_F(EtcdFrozen, AHolderIsToldBeforeItsLeaseEnds) { freezeUnderAHolder(store); }

TEST(EtcdFork, AnInheritedDriverTouchesNoSocket) {
  FaultProxy proxy(shared().port(0));
  const auto driver = openEtcd(etcdUri(proxy.port()));
  inherit(driver);
  EXPECT_EQ(proxy.connections(), 1U);
}

TEST(EtcdFork, TheChildMayMakeItsOwn) {
  makeOneInTheChild([] { return openEtcd(shared().uri()); });
}

}  // namespace
}  // namespace lockkeeper::test
