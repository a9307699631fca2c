// What a server refuses, and what is wrong with how it is set up.

#include "etcd_fixture.h"
#include "fault_proxy.h"
#include "free_port.h"
#include "redis_server.h"
#include "tls_files.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

std::string refused(const std::string& uri) {
  try {
    (void)openEtcd(uri)->acquire(Claimant{}.request());
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()).find("s3cr3t"), std::string::npos) << error.what();
    return error.what();
  } catch (const Error& error) {
    return std::string("not a ConfigError: ") + error.what();
  }
  return "granted";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(EtcdRefusal, AWrongLogInIsAConfigError) {
  EtcdCluster cluster({.nodes = 1, .password = "open-sesame"});
  const std::string at = "127.0.0.1:" + std::to_string(cluster.port(0));
  for (const std::string& uri :
       {"etcd://keeper:s3cr3t@" + at, "etcd://" + at, "etcd://nobody:s3cr3t@" + at}) {
    const std::string text = refused(uri);
    EXPECT_TRUE(has(text, "authentication failed") || has(text, "user name is empty")) << text;
  }
  EXPECT_TRUE(has(refused("etcd://keeper:open-sesame@" + at + "/elsewhere"), "permission denied"));
  EXPECT_TRUE(granted(openEtcd(cluster.uri())->acquire(Claimant{}.request())));
}

TEST(EtcdRefusal, LogsInAgainWhenTheServerHasForgottenIt) {
  EtcdCluster cluster({.nodes = 1, .password = "open-sesame"});
  const auto driver = openEtcd(cluster.uri());
  const Claimant who;
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  cluster.endLogIns();
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  driver->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed) << renewal.cause;
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST(EtcdRefusal, ALogInWhereNoneIsAskedForIsAConfigError) {
  EtcdCluster cluster({.nodes = 1});
  const std::string text = refused("etcd://keeper:s3cr3t@127.0.0.1:" + std::to_string(cluster.port(0)));
  EXPECT_TRUE(has(text, "authentication is not enabled")) << text;
}

TEST(EtcdRefusal, ACertificateThatIsNotRightIsAConfigError) {
  const TlsFiles& files = TlsFiles::shared();
  EtcdCluster cluster({.nodes = 1, .tls = true});
  EtcdCluster otherHost({.nodes = 1, .tls = true, .otherHostCertificate = true});
  EXPECT_TRUE(
      has(refused(cluster.uri() + "?caFile=" + files.strangerAuthority().string()), "trusted authority"));
  EXPECT_TRUE(has(refused(otherHost.uri() + "?caFile=" + files.authority().string()), "host name"));
  EXPECT_TRUE(granted(
      openEtcd(cluster.uri() + "?caFile=" + files.authority().string())->acquire(Claimant{}.request())));
  EXPECT_TRUE(granted(openEtcd(otherHost.uri() + ",127.0.0.1:" + std::to_string(cluster.port(0)) + patient +
                               "&caFile=" + files.authority().string())
                          ->acquire(Claimant{}.request())))
      << "another member's is right";
}

TEST(EtcdRefusal, AMemberWithoutAGatewayIsPassedOver) {
  EtcdCluster cluster({.nodes = 1});
  EtcdCluster without({.nodes = 1, .gateway = false});
  FaultProxy proxy(cluster.port(0));
  const auto at = [](std::uint16_t port) { return ",127.0.0.1:" + std::to_string(port); };
  const auto driver = openEtcd(etcdUri(proxy.port()) + at(without.port(0)) + at(cluster.port(0)));
  const Claimant who;
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  proxy.leadTo(freePort());
  proxy.endConnections(Ending::rst);
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  driver->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed) << renewal.cause;
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(
      granted(openEtcd(etcdUri(without.port(0)) + at(cluster.port(0)))->acquire(Claimant{}.request())));
  EXPECT_TRUE(has(refused(etcdUri(without.port(0))), "no JSON gateway"));
  EXPECT_THROW((void)openEtcd(etcdUri(without.port(0)) + at(freePort()))->acquire(Claimant{}.request()),
               StoreUnavailable)
      << "the other member may have one";
}

TEST(EtcdRefusal, AServerThatIsNoEtcdGrantsNothing) {
  const RedisServer redis;
  EXPECT_THROW((void)openEtcd(etcdUri(redis.port()))->acquire(Claimant{}.request()), StoreUnavailable);
}

TEST(EtcdRefusal, NobodyThereIsUnavailable) {
  const auto driver = openEtcd(etcdUri(freePort()));
  const Claimant who;
  EXPECT_THROW((void)driver->acquire(who.request()), StoreUnavailable);
  EXPECT_THROW((void)driver->release(who.claim(), soon()), StoreUnavailable);
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  driver->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.outcome, RenewOutcome::unavailable);
  EXPECT_NE(renewal.cause, "");
}

TEST(EtcdRefusal, KeepsNoLimitsAndSaysSo) {
  StoreRegistry registry;
  etcd::use(registry);
  try {
    (void)registry.openRates("etcd://127.0.0.1:1");
    ADD_FAILURE() << "it has opened";
  } catch (const ConfigError& error) {
    EXPECT_TRUE(has(error.what(), "keeps no rate limits")) << error.what();
  }
}

}  // namespace
}  // namespace lockkeeper::test
