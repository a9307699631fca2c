// Several hosts in one URI: which of them takes the writes.

#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "free_port.h"
#include "hosts/session_opener.h"
#include "hosts/session_pool.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/mysql/rate_table.h"
#include "lockkeeper/mysql/server_rows.h"
#include "lockkeeper/rate_policy.h"
#include "lockkeeper/testing/noted_losses.h"
#include "session/server_options.h"
#include "several_hosts.h"
#include "tls_files.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(SeveralHosts, TheOneThatTakesWritesIsFoundByLocksLimitsAndRowsAndFollowed) {
  const auto version = open(uri("mysql+version", both()));
  const auto getLock = open(uri("mysql+getlock", both()));
  mysql::RateTable limits(StoreUri::parse(uri("mysql+version", both())));
  mysql::ServerRows rows(StoreUri::parse("mysql://clerk:clerk@" + both() + "/" + database), {});
  const RatePolicy policy{"p", {.rate = {1'000'000, 1s}, .burst = 1000}};
  const std::vector<std::function<void()>> calls{
      [&] { EXPECT_TRUE(granted(version->acquire(Claimant{}.request()))); },
      [&] { EXPECT_TRUE(granted(getLock->acquire(Claimant{}.request()))); },
      [&] {
        RateCharge charge{.key = "k", .law = &policy.law()};
        limits.take({&charge, 1}, soon());
      },
      [&] {
        auto transaction = rows.begin();
        transaction.execute("INSERT INTO lockkeeper_rates (family, id) VALUES (?, ?)",
                            {std::int64_t{7}, std::to_string(now().time_since_epoch().count())});
        transaction.commit();
      }};
  const std::string locks = "SELECT COUNT(*) FROM " + database + ".lockkeeper_locks";
  for (const auto& each : calls) succeedsInTheEnd(each);
  EXPECT_EQ(first.ask(locks), "1");
  setWritable(false, true);
  for (const auto& each : calls) succeedsInTheEnd(each);
  EXPECT_EQ(second.ask(locks), "1");
  EXPECT_EQ(first.ask(locks), "1");
  setWritable(true, false);
  for (const auto& each : calls) succeedsInTheEnd(each);
  EXPECT_EQ(first.ask(locks), "2");
}

TEST_F(SeveralHosts, NoneThatTakesWritesIsUnavailableAndSaysWhyOfEach) {
  setWritable(false, false);
  const auto driver = open(uri("mysql+version", address(freePort()) + "," + both()));
  try {
    (void)driver->acquire(Claimant{}.request());
    ADD_FAILURE() << "granted";
  } catch (const StoreUnavailable& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("Can't connect"), HasSubstr(address(first.port())),
                                    HasSubstr(address(second.port())), HasSubstr("is read-only")));
  }
}

TEST_F(SeveralHosts, TwoThatTakeWritesAreRefusedUntilOneIsReadOnly) {
  setWritable(true, true);
  const auto driver = open(uri("mysql+version", both()));
  try {
    (void)driver->acquire(Claimant{}.request());
    ADD_FAILURE() << "granted";
  } catch (const StoreUnavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr("both take writes"));
  }
  setWritable(false, true);
  succeedsInTheEnd([&] { EXPECT_TRUE(granted(driver->acquire(Claimant{}.request()))); });
}

// A replica that writes something by itself is none any more.
TEST_F(SeveralHosts, NobodyMakesATableBeforeThePrimaryIsKnown) {
  setWritable(true, true);
  for (const char* const scheme : {"mysql+version", "mysql+getlock"}) {
    EXPECT_THROW((void)open(uri(scheme, both()))->acquire(Claimant{}.request()), StoreUnavailable);
  }
  const std::string tables =
      "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema='" + database + "'";
  EXPECT_EQ(first.ask(tables), "0");
  EXPECT_EQ(second.ask(tables), "0");
  setWritable(true, false);
  for (const char* const scheme : {"mysql+version", "mysql+getlock"}) {
    const auto driver = open(uri(scheme, both()));
    succeedsInTheEnd([&] { EXPECT_TRUE(granted(driver->acquire(Claimant{}.request()))); });
  }
  EXPECT_NE(first.ask(tables), "0");
  EXPECT_EQ(second.ask(tables), "0");
}

// The account writes on a read-only server, so that only the driver itself can know that it must not.
TEST_F(SeveralHosts, OnceTheNewPrimaryIsKnownNoSessionWithTheFormerOneIsUsed) {
  const std::string login = "mysql+version://shop:p%40ss%2Fword@";
  const auto options = mysql::ServerOptions::fromUri(StoreUri::parse(login + both() + "/" + database));
  mysql::SessionOpener opener(options, {}, {});
  mysql::SessionPool pool(opener, 4);
  const auto port = [&](mysql::SessionPool::Use& use) {
    const auto asked = use.ask("SELECT @@port", soon()).number(0);
    use.keep();
    return asked.value_or(0);
  };
  {
    mysql::SessionPool::Use one(pool, soon());
    mysql::SessionPool::Use another(pool, soon());
    EXPECT_EQ(port(one), first.port());
    EXPECT_EQ(port(another), first.port());
  }
  mysql::SessionPool::Use inUse(pool, soon());
  setWritable(false, true);
  {
    mysql::SessionPool::Use idle(pool, soon());  // There was one more.
    mysql::SessionPool::Use fresh(pool, soon());
    EXPECT_EQ(port(fresh), second.port());
    EXPECT_EQ(port(idle), first.port()) << "it had been taken before";
  }
  EXPECT_EQ(port(inUse), first.port());
  for (int i = 0; i < 4; ++i) {
    mysql::SessionPool::Use later(pool, soon());
    EXPECT_EQ(port(later), second.port());
  }
}

TEST_F(SeveralHosts, ALookFindsTheNewPrimaryAlsoWhileSessionsWithTheFormerOneAreIdle) {
  const auto options = mysql::ServerOptions::fromUri(StoreUri::parse(uri("mysql", both())));
  mysql::SessionOpener opener(options, {}, {});
  mysql::SessionPool pool(opener, 2);
  mysql::SessionPool::Use waits(pool, soon());
  mysql::SessionPool::Use(pool, soon()).keep();
  setWritable(false, true);
  EXPECT_TRUE(waits.isCurrent());
  waits.lookForPrimary(soon());
  EXPECT_FALSE(waits.isCurrent());
}

TEST_F(SeveralHosts, AHolderOfGetLockIsToldAtOnceWhenAnybodyFindsTheNewPrimary) {
  const auto driver = open(uri("mysql+getlock", both()));
  const auto lost = std::make_shared<testing::NotedLosses>();
  capability<LossReporting>(*driver)->addLossListener(lost);
  const std::array<Claimant, 3> held{};
  for (const Claimant& each : held) {
    AcquireRequest request = each.request();
    // Each length has a session of its own.
    request.ttl = longTtl + 1s * (&each - held.data());
    ASSERT_TRUE(granted(driver->acquire(request)));
  }
  setWritable(false, true);
  for (const Claimant& each : held) EXPECT_FALSE(lost->heardOf(each.token));
  succeedsInTheEnd([&] { EXPECT_TRUE(granted(driver->acquire(Claimant{}.request()))); });
  for (const Claimant& each : held) {
    EXPECT_TRUE(lost->heardOf(each.token));
    Renewal renewal{.claim = each.claim(), .ttl = longTtl};
    driver->renew({&renewal, 1}, soon());
    EXPECT_EQ(renewal.outcome, RenewOutcome::notOwner);
  }
}

TEST_F(SeveralHosts, AHolderOfGetLockIsToldWhenALogInFindsItsServerReadOnly) {
  const auto driver = open(uri("mysql+getlock", both()));
  const auto lost = std::make_shared<testing::NotedLosses>();
  capability<LossReporting>(*driver)->addLossListener(lost);
  const Claimant held;
  ASSERT_TRUE(granted(driver->acquire(held.request())));
  setWritable(false, false);
  // Another length, on a session of its own.
  const Claimant other;
  AcquireRequest request = other.request();
  request.ttl = longTtl + 1s;
  EXPECT_THROW((void)driver->acquire(request), StoreUnavailable);
  EXPECT_TRUE(lost->heardOf(held.token));
}

// As a member that its group has expelled: it answers nothing but the error, not even that it is read-only.
TEST_F(SeveralHosts, AnErrorThatOnlyAFormerPrimaryGivesEndsAllNamedLocksThere) {
  const auto driver = open(uri("mysql+getlock", both()));
  const auto lost = std::make_shared<testing::NotedLosses>();
  capability<LossReporting>(*driver)->addLossListener(lost);
  const std::array<Claimant, 2> held{};
  for (const Claimant& each : held) {
    AcquireRequest request = each.request();
    // Each length has a session of its own.
    request.ttl = longTtl + 1s * (&each - held.data());
    ASSERT_TRUE(granted(driver->acquire(request)));
  }
  const std::string fences = database + ".lockkeeper_fences";
  first.execute("RENAME TABLE " + fences + " TO " + database + ".kept");
  first.execute(
      "CREATE FUNCTION " + database +
      ".expelled() RETURNS INT BEGIN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 3796; RETURN 1; END");
  first.execute("CREATE VIEW " + fences + " AS SELECT * FROM " + database + ".kept WHERE " + database +
                ".expelled() = 1");
  EXPECT_THROW((void)driver->holder(held[0].key, soon()), StoreUnavailable);
  for (const Claimant& each : held) EXPECT_TRUE(lost->heardOf(each.token));
}

TEST_F(SeveralHosts, WithTlsOnlyOneWhoseCertificateNamesItIsUsed) {
  const TlsFiles& files = TlsFiles::shared();
  DatabaseServer impostor(Brand::mariadb, {"--ssl-ca=" + files.authority().string(),
                                           "--ssl-cert=" + files.otherHostCertificate().string(),
                                           "--ssl-key=" + files.otherHostKey().string()});
  DatabaseServer good(Brand::mariadb,
                      {"--ssl-ca=" + files.authority().string(), "--ssl-cert=" + files.certificate().string(),
                       "--ssl-key=" + files.key().string()});
  const std::string name = impostor.newDatabase();
  ASSERT_EQ(good.newDatabase(), name);
  const auto tlsUri = [&](const std::string& scheme, const std::string& hosts) {
    return scheme + "://shop:p%40ss%2Fword@" + hosts + "/" + name +
           "?createTable=true&tls=on&caFile=" + files.authority().string();
  };
  for (const char* const scheme : {"mysql+version", "mysql+getlock"}) {
    const auto driver = open(tlsUri(scheme, address(impostor.port()) + "," + address(good.port())));
    EXPECT_TRUE(granted(driver->acquire(Claimant{}.request()))) << scheme;
    EXPECT_EQ(impostor.sessions(), 0) << scheme;
    const auto alone =
        open(tlsUri(scheme, address(impostor.port()) + ",localhost:" + std::to_string(impostor.port())));
    // On a busy machine one of them answers too late, and might be the right one.
    succeedsInTheEnd([&] {
      try {
        (void)alone->acquire(Claimant{}.request());
        ADD_FAILURE() << "granted by an impostor";
      } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), HasSubstr("certificate must name its host"));
      }
    });
  }
}

}  // namespace
}  // namespace lockkeeper::test
