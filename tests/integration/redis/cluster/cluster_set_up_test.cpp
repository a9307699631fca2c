// Bad input and broken clusters: each is one clear line, told apart from a store that is only not there now.

#include <thread>
#include <vector>

#include "cluster_fixture.h"
#include "free_port.h"
#include "inherited_driver.h"
#include "redis_server.h"
#include "tls_files.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// What an acquire throws, or empty; the test fails when it is of another class.
template <class Expected>
std::string failureOf(const std::string& uri) {
  try {
    (void)openStore(uri)->acquire(Claimant{}.request());
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Expected& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
  }
  return {};
}

::testing::AssertionResult says(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos)
      return ::testing::AssertionFailure() << "'" << text << "' lacks '" << part << "'";
  }
  if (text.find('\n') != std::string::npos) return ::testing::AssertionFailure() << "more than one line";
  return ::testing::AssertionSuccess();
}

std::string address(const RedisServer& server) { return "127.0.0.1:" + std::to_string(server.port()); }

TEST(ClusterSetUp, EachSchemeNamesTheOtherOneForAServerThatIsNotItsOwn) {
  const RedisServer plain;
  const RedisCluster cluster(1, 0);
  EXPECT_TRUE(says(failureOf<ConfigError>("redis+cluster://" + address(plain)),
                   {"cluster_enabled:0", "redis://" + address(plain)}));
  const std::string node = cluster.uri().substr(std::string("redis+cluster://").size());
  EXPECT_TRUE(
      says(failureOf<ConfigError>("redis://" + node), {"cluster_enabled:1", "redis+cluster://" + node}));
}

TEST(ClusterSetUp, ANodeAloneIsRefused) {
  const RedisServer alone(RedisOptions{.cluster = true});
  EXPECT_TRUE(says(failureOf<ConfigError>("redis+cluster://" + address(alone)),
                   {address(alone), "is a cluster node alone"}));
}

TEST(ClusterSetUp, NodesOfTwoClustersAreRefused) {
  RedisCluster one(1, 0);
  RedisCluster other(1, 0);
  const std::string uri = one.uri() + "," + address(other.node(0));
  EXPECT_TRUE(says(failureOf<ConfigError>(uri), {"belongs to another cluster than"}));
}

TEST(ClusterSetUp, AWrongSeedThatAnswersAloneDoesNotDecideWhichClusterItIs) {
  RedisCluster cluster(2, 0);
  RedisCluster other(1, 0);
  const std::string uri = cluster.uri() + "," + address(other.node(0));
  const auto driver = openStore(uri);
  const Claimant who = claimOf(cluster.keyAt(0, "k"));
  for (const std::size_t node : {0U, 1U}) cluster.node(node).pause();
  EXPECT_THROW((void)driver->acquire(who.request(now() + 2s)), StoreUnavailable);
  for (const std::size_t node : {0U, 1U}) cluster.node(node).resume();
  EXPECT_TRUE(waitUntil([&] {
    try {
      return granted(driver->acquire(who.request(soon())));
    } catch (const StoreUnavailable&) {
      return false;
    }
  }));
  EXPECT_NE(cluster.node(0).command({"GET", who.key}), "(nil)");
}

/// Opens the store and takes a lock there. Returns what was noted.
std::vector<std::string> notesOf(const std::string& uri, const std::string& key) {
  struct Notes final : Listener {
    void on(const Event& event) override {
      if (event.kind == EventKind::noted) texts.emplace_back(event.text);
    }
    std::vector<std::string> texts;
  };
  Environment environment;
  const auto notes = std::make_shared<Notes>();
  environment.listener = notes;
  StoreRegistry registry;
  redis::use(registry);
  EXPECT_TRUE(granted(registry.open(uri, environment)->acquire(claimOf(key).request())));
  return notes->texts;
}

TEST(ClusterSetUp, AWrongSeedRefusesNobodyAndIsTold) {
  RedisCluster cluster(2, 0);
  RedisCluster other(1, 0);
  const RedisServer plain;
  const RedisServer guarded(RedisOptions{.cluster = true, .password = "secret"});
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {address(plain), "is no node of a Redis Cluster (cluster_enabled:0)"},
      {address(guarded), "asks for a password"},
      {address(other.node(0)), "it belongs to another cluster"}};
  for (const auto& [seed, why] : wrong) {
    int told = 0;
    for (const std::string& text : notesOf(cluster.uri() + "," + seed, cluster.keyAt(0, "k" + seed))) {
      told += text.starts_with("the node " + seed + " is not asked, since it is set up wrongly: ") &&
              text.find(why) != std::string::npos;
    }
    EXPECT_EQ(told, 1) << seed;
  }
}

TEST(ClusterSetUp, NobodyThereAndAMajorityThatIsGoneAreOutages) {
  RedisCluster cluster(3, 0);
  const auto driver = openStore(cluster.uri());
  const std::string key = cluster.keyAt(0, "k");
  (void)driver->holder(key, soon());
  cluster.kill(1);
  cluster.kill(2);
  std::string text;
  EXPECT_TRUE(waitUntil([&] {
    try {
      (void)driver->holder(key, soon());
    } catch (const StoreUnavailable& error) {
      text = error.what();
    }
    return !text.empty();
  }));
  EXPECT_TRUE(says(text, {"CLUSTERDOWN"}));
  const Claimant who = claimOf(key);
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  driver->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::unavailable);
  EXPECT_TRUE(says(renewal.cause, {"CLUSTERDOWN"}));
  cluster.kill(0);
  EXPECT_TRUE(says(failureOf<StoreUnavailable>(cluster.uri()), {"no node can be reached"}));
}

TEST(ClusterSetUp, AnAddressThatOnlyTheClusterCanReachIsNamedAsSuch) {
  const std::uint16_t nobody = freePort();
  RedisCluster cluster(1, 0, {.arguments = {"--cluster-announce-port", std::to_string(nobody)}});
  EXPECT_TRUE(says(failureOf<StoreUnavailable>(cluster.uri()),
                   {"127.0.0.1:" + std::to_string(nobody), "the cluster announces this address"}));
}

TEST(ClusterSetUp, NodesMayGoByNamesOrByTheAddressThatTheyWereReachedAt) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--cluster-announce-hostname", "localhost",
                                 "--cluster-preferred-endpoint-type", "hostname"},
        {"--cluster-preferred-endpoint-type", "unknown-endpoint"}}) {
    RedisCluster cluster(2, 0, {.arguments = arguments});
    const auto driver = openStore(cluster.uri("", 1));
    for (std::size_t node = 0; node < 2; ++node) {
      EXPECT_TRUE(granted(driver->acquire(claimOf(cluster.keyAt(node, "k")).request())));
    }
  }
}

TEST(ClusterSetUp, CertificatesAreCheckedAtEachNode) {
  const std::string files = "tls=on&caFile=" + TlsFiles::shared().authority().string();
  const std::vector<std::string> arguments{"--tls-cluster", "yes", "--tls-replication", "yes"};
  {
    RedisCluster cluster(2, 0, {.tls = true, .arguments = arguments});
    const auto driver = openStore(cluster.uri(files));
    for (std::size_t node = 0; node < 2; ++node) {
      EXPECT_TRUE(granted(driver->acquire(claimOf(cluster.keyAt(node, "k")).request())));
    }
    EXPECT_TRUE(says(failureOf<ConfigError>(cluster.uri("tls=on")), {"not signed by a trusted authority"}));
  }
  const RedisServer other(RedisOptions{.cluster = true, .tls = true, .otherHostCertificate = true});
  EXPECT_TRUE(says(
      failureOf<ConfigError>("redis+cluster://127.0.0.1:" + std::to_string(other.tlsPort()) + "?" + files),
      {"not for this host name"}));
}

TEST(ClusterSetUp, AUserNeedsNoMoreThanTheDocumentedRights) {
  RedisCluster cluster(
      2, 0,
      {.users = {"user keeper on >let-me-in ~* -@all +@connection +info +set +get +incr +del +pexpire +pttl "
                 "+time +eval +evalsha +scan +wait +exists +zadd +zrange +zrem +zscore +hget +hset +hdel "
                 "+spublish +ssubscribe +cluster|slots +cluster|info resetchannels &lockkeeper:*"}});
  const std::string hosts = cluster.uri().substr(std::string("redis+cluster://").size());
  LockManager manager(openStore("redis+cluster://keeper:let-me-in@" + hosts));
  LockManager other(openStore("redis+cluster://keeper:let-me-in@" + hosts));
  std::optional<Lock> held = manager.lock("k");
  std::jthread waiter([&] { (void)other.lock("k", {.waitFor = 60s}); });
  const std::size_t node = RedisCluster::slotOf("k") < RedisCluster::slots / 2 ? 0 : 1;
  EXPECT_TRUE(waitUntil([&] {
    return cluster.node(node).command({"HVALS", "{k}:lockkeeper:waiters"}).find("lockkeeper:") !=
           std::string::npos;
  })) << "the waiter polls";
  held.reset();
  waiter.join();
  EXPECT_TRUE(says(failureOf<ConfigError>("redis+cluster://keeper:wrong@" + hosts), {"refused"}));
}

TEST(ClusterSetUp, AForkedChildTouchesNothing) {
  RedisCluster cluster(2, 0);
  inherit(openStore(cluster.uri()));
  makeOneInTheChild([&] { return openStore(cluster.uri()); });
}

}  // namespace
}  // namespace lockkeeper::test
