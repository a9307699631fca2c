#include "redlock_fixture.h"
#include "tls_files.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// The message of the ConfigError that a call meets.
std::string refusal(const std::string& uri) {
  try {
    (void)openRedlock(uri)->acquire(Claimant{}.request());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

std::string at(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

using RedlockSetUp = RedlockTest;

TEST_F(RedlockSetUp, TheSameServerUnderTwoAddressesIsRefused) {
  FaultProxy again(servers[0].port());
  const std::string text =
      refusal(redlockUri({proxies[0]->port(), proxies[1]->port(), again.port()}, withoutGuard));
  EXPECT_NE(text.find("same server"), std::string::npos) << text;
  EXPECT_NE(text.find(at(again.port())), std::string::npos) << text;
  EXPECT_NE(text.find(at(proxies[0]->port())), std::string::npos) << text;
}

// It may be the master in a moment: until then it is as good as down.
TEST_F(RedlockSetUp, AReplicaHasNoVote) {
  const RedisServer replica({.arguments = {"--replicaof", "127.0.0.1", std::to_string(servers[0].port())}});
  const auto driver = openRedlock(redlockUri({ports()[0], ports()[1], replica.port()}, withoutGuard));
  const Claimant who{};
  EXPECT_TRUE(granted(driver->acquire(who.request())));
  std::string fault;
  EXPECT_TRUE(waitUntil([&] {  // At first it may still be connecting.
    fault = capability<Quorate>(*driver)->views(who.key, soon())[2].fault;
    return fault.find("not a master") != std::string::npos;
  })) << fault;
  EXPECT_NE(fault.find(at(replica.port())), std::string::npos) << fault;
}

TEST_F(RedlockSetUp, NothingIsLockedWhenANodeRefusesTheCredentials) {
  const RedisServer guarded({.password = "s3cr3t-right"});
  const Claimant who{};
  const auto driver = openRedlock("redlock://" + at(ports()[0]) + "," + at(ports()[1]) + ",:s3cr3t-wrong@" +
                                  at(guarded.port()) + "?" + withoutGuard);
  for (int i = 0; i < 2; ++i) {
    try {
      (void)driver->acquire(who.request());
      ADD_FAILURE() << "accepted";
    } catch (const ConfigError& fault) {
      const std::string text = fault.what();
      EXPECT_NE(text.find(at(guarded.port())), std::string::npos) << text;
      EXPECT_EQ(text.find("s3cr3t"), std::string::npos) << text;
    }
  }
  EXPECT_FALSE(has(0, who.key));
  EXPECT_FALSE(has(1, who.key));
}

TEST_F(RedlockSetUp, ANodeThatGoesWrongLaterIsOnlyDown) {
  const auto driver = open();
  ASSERT_TRUE(allAgree(*driver));
  servers[0].command({"REPLICAOF", "127.0.0.1", std::to_string(servers[1].port())});
  for (int i = 0; i < 20; ++i) {
    const Claimant who{};
    ASSERT_TRUE(granted(driver->acquire(who.request())));
    EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  }
  servers[0].command({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(allAgree(*driver));
}

TEST_F(RedlockSetUp, EachNodeHasItsOwnCredentials) {
  const RedisServer first({.password = "one"});
  const RedisServer second({.password = "admin", .users = {"user ann on >two ~* +@all"}});
  const auto driver = openRedlock("redlock://:one@" + at(first.port()) + ",ann:two@" + at(second.port()) +
                                  "," + at(ports()[0]) + "/3?" + withoutGuard);
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  EXPECT_TRUE(waitUntil([&] {
    for (const Quorate::View& view : capability<Quorate>(*driver)->views(who.key, soon())) {
      if (!view.holder || view.holder->owner != "test:1" || !view.fault.empty()) return false;
    }
    return true;
  }));
}

/// One node with TLS, one with a user and a database of its own, and one as it comes.
TEST_F(RedlockSetUp, EachNodeIsReachedInItsOwnWay) {
  const RedisServer encrypted({.tls = true});
  const RedisServer guarded({.password = "admin", .users = {"user ann on >two ~* +@all"}});
  const auto uri = [&](const std::filesystem::path& authority) {
    return "redlock://" + at(encrypted.tlsPort()) + ",ann:two@" + at(guarded.port()) + "," + at(ports()[0]) +
           "/0,7,0?tls=on,off,off&caFile=" + authority.string() + "&" + withoutGuard;
  };
  const auto driver = openRedlock(uri(TlsFiles::shared().authority()));
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  EXPECT_TRUE(waitUntil([&] { return encrypted.command({"EXISTS", who.key}) == "1" && has(0, who.key); }));
  EXPECT_TRUE(waitUntil([&] {
    return guarded.command({"INFO", "keyspace"}).find("db7:keys=1") != std::string::npos;
  }));
  EXPECT_NE(encrypted.command({"CLIENT", "LIST"}).find("laddr=" + at(encrypted.tlsPort())),
            std::string::npos);
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);

  const std::string stranger = refusal(uri(TlsFiles::shared().strangerAuthority()));
  EXPECT_NE(stranger.find(at(encrypted.tlsPort())), std::string::npos) << stranger;
  EXPECT_NE(stranger.find("certificate"), std::string::npos) << stranger;
}

TEST_F(RedlockSetUp, AnEvenNumberOfNodesIsNoted) {
  const auto rounds = std::make_shared<Rounds>();
  const auto even =
      openRedlock(redlockUri({ports()[0], ports()[1], ports()[2], ports()[3]}, "restartGuard=5s"), rounds);
  EXPECT_NE(rounds->notes().find("even number"), std::string::npos);
}

TEST_F(RedlockSetUp, ANameThatDoesNotResolveDoesNotHoldUpTheOthers) {
  const auto rounds = std::make_shared<Rounds>();
  const auto driver = openRedlock(redlockUri({ports()[0], ports()[1]}, "") + ",no-such-host.invalid," +
                                      at(ports()[2]) + ",neither-this.invalid?" + withoutGuard,
                                  rounds);
  const Instant start = now();
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  EXPECT_LT(now(), start + 2 * nodeTimeout + schedulingSlack);
  const auto views = capability<Quorate>(*driver)->views(who.key, soon());
  ASSERT_EQ(views.size(), 5U);
  EXPECT_NE(views[2].fault.find("no-such-host.invalid"), std::string::npos) << views[2].fault;
  EXPECT_TRUE(views[4].holder == std::nullopt && !views[4].fault.empty());
}

TEST_F(RedlockSetUp, AGreaterDriftShortensTheLease) {
  const auto driver = open(std::string(withoutGuard) + "&drift=21");
  const Claimant who{};
  const AcquireResult result = driver->acquire(request(who, 10min));
  ASSERT_TRUE(granted(result));
  // Core takes one of the 21 percent off by itself.
  EXPECT_LE(std::get<Granted>(result).leasedFrom, now() - 2min);
  Renewal renewal{.claim = who.claim(), .ttl = 10min};
  driver->renew({&renewal, 1}, soon());
  ASSERT_EQ(renewal.outcome, RenewOutcome::renewed);
  EXPECT_LE(renewal.leasedFrom, now() - 2min);
  EXPECT_GT(renewal.leasedFrom, now() - 3min);
}

TEST_F(RedlockSetUp, EveryRoundTellsTheListenerOfEveryNode) {
  const auto rounds = std::make_shared<Rounds>();
  const auto driver = open(withoutGuard, rounds);
  ASSERT_TRUE(allAgree(*driver));
  rounds->clear();
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  for (const std::uint16_t port : ports()) {
    EXPECT_EQ(rounds->count(port, NodeOutcome::agreed) + rounds->count(port, NodeOutcome::unanswered), 1);
  }
}

}  // namespace
}  // namespace lockkeeper::test
