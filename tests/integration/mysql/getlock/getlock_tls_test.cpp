// Encrypted sessions: with the right server only, and never less than was asked for.

#include <Poco/Data/Session.h>

#include <deque>
#include <future>
#include <map>

#include "getlock/fence_counter.h"
#include "getlock/getlock_options.h"
#include "getlock_fixture.h"
#include "hosts/session_opener.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/store_registry.h"
#include "tls_files.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

enum class Tls { good, otherHost, none };

std::vector<std::string> settingsFor(Brand brand, Tls tls) {
  if (tls == Tls::none) return {brand == Brand::mariadb ? "--skip-ssl" : "--tls-version="};
  const TlsFiles& files = TlsFiles::shared();
  const bool good = tls == Tls::good;
  return {"--ssl-ca=" + files.authority().string(),
          "--ssl-cert=" + (good ? files.certificate() : files.otherHostCertificate()).string(),
          "--ssl-key=" + (good ? files.key() : files.otherHostKey()).string()};
}

DatabaseServer& serverWith(Brand brand, Tls tls) {
  static std::map<std::pair<Brand, Tls>, DatabaseServer> servers;
  return servers.try_emplace({brand, tls}, brand, settingsFor(brand, tls)).first->second;
}

std::string trusting(const std::filesystem::path& authority) {
  return "tls=on&caFile=" + authority.string() + "&connectTimeout=1s&ioTimeout=1s";
}

class GetLockTls : public ::testing::TestWithParam<Brand> {
 protected:
  std::shared_ptr<LockDriver> open(const std::string& query) const {
    return openGetLock(database, server.port(), query);
  }
  std::unique_ptr<mysql::ServerSession> session(const std::string& query) {
    const std::string plain = server.uri(database);
    const auto uri =
        StoreUri::parse("mysql+getlock" + plain.substr(plain.find("://")) + "?fence=off&" + query);
    return openers.emplace_back(mysql::GetLockOptions::fromUri(uri), mysql::Preparation{}, Environment{})
        .open(soon());
  }
  static std::string refusal(LockDriver& driver) {
    try {
      (void)driver.acquire(Claimant{}.request());
    } catch (const ConfigError& error) {
      const std::string said = error.what();
      EXPECT_EQ(said.find("p@ss"), std::string::npos) << said;
      return said;
    }
    return "accepted";
  }
  static void expectRefused(DatabaseServer& by, const std::string& query, const std::string& named) {
    const std::string said = refusal(*openGetLock(by.newDatabase(), by.port(), query));
    EXPECT_NE(said.find(named), std::string::npos) << said << " does not name " << named;
  }

  std::deque<mysql::SessionOpener> openers;
  const std::string trust = trusting(TlsFiles::shared().authority());
  DatabaseServer& server = serverWith(GetParam(), Tls::good);
  const std::string database = server.newDatabase();
};

TEST_P(GetLockTls, EncryptsWithACipherOfTls12OrLater) {
  const auto status = [&](const std::string& query) {
    const auto asked = session(query);
    return std::pair(asked->query("SHOW STATUS LIKE 'Ssl_cipher'", soon()).text(1),
                     asked->query("SHOW STATUS LIKE 'Ssl_version'", soon()).text(1));
  };
  EXPECT_NE(status(trust).first, "");
  EXPECT_GE(status(trust).second, "TLSv1.2");
  EXPECT_EQ(status("tls=off").first, "") << "only when told";
}

/// For a server that lets nobody in without: whatever the driver does works, and only encrypted.
TEST_P(GetLockTls, EverySessionIsEncrypted) {
  Poco::Data::Session admin("MySQL", server.connectionString(database), 10);
  admin << "SET GLOBAL require_secure_transport = ON", Poco::Data::Keywords::now;
  const std::shared_ptr<void> restore(nullptr, [&](void*) {
    admin << "SET GLOBAL require_secure_transport = OFF", Poco::Data::Keywords::now;
  });
  const auto count = [&](const std::string& rows) {
    int found = 0;
    admin << "SELECT COUNT(*) FROM " + rows, Poco::Data::Keywords::into(found), Poco::Data::Keywords::now;
    return found;
  };
  EXPECT_THROW((void)open("")->acquire(Claimant{}.request()), ConfigError);

  const auto driver = open(trust);
  const Claimant holder{};
  Claimant waiter;
  waiter.key = holder.key;
  ASSERT_TRUE(granted(driver->acquire(holder.request())));
  auto waiting = std::async(std::launch::async, [&] {
    return capability<Waitable>(*driver)->acquireWaiting(waiter.request(in(1min)), 1min, {});
  });
  ASSERT_TRUE(waitUntil([&] {
    return count("information_schema.processlist WHERE user = 'shop' AND state = 'User lock'") == 1;
  }));
  EXPECT_EQ(renew(*driver, holder), RenewOutcome::renewed);
  EXPECT_EQ(driver->release(holder.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(granted(waiting.get()));

  RateLimiter limiter(capability<RateDriver>(driver), {.operationTimeout = 10s});
  const RatePolicy policy("sms", {.rate = Rate::parse("rate", "1/day"), .burst = 1});
  EXPECT_TRUE(limiter.take("k", policy));
  EXPECT_FALSE(limiter.take("k", policy));
  EXPECT_EQ(count("lockkeeper_rates"), 1);
  mysql::FenceCounter counter(StoreUri::parse(server.uri(database) + "?" + trust), {});
  EXPECT_GT(counter.next(holder.claim(), false, soon()), 0U);
}

TEST_P(GetLockTls, OnlyTheRightServerIsTrusted) {
  expectRefused(server, trusting(TlsFiles::shared().strangerAuthority()), "authority of caFile");
  expectRefused(server, "tls=on", "authority of caFile");
  expectRefused(serverWith(GetParam(), Tls::otherHost), trust, "must name its host");
  EXPECT_EQ(server.sessions(), 0);
}

TEST_P(GetLockTls, AServerWithoutTlsIsRefusedAndToldNothing) {
  expectRefused(serverWith(GetParam(), Tls::none), trust, "server does not support it");
  EXPECT_EQ(serverWith(GetParam(), Tls::none).sessions(), 0);
}

TEST_P(GetLockTls, AFileThatHoldsNoCertificatesIsNamed) {
  const TempFolder folder;
  writeFile(folder / "garbage.pem", "garbage");
  expectRefused(server, trusting(folder / "garbage.pem"), "certificate");
}

TEST_P(GetLockTls, NoCutOfTheGreetingYieldsAGrantOrBlamesTheCertificate) {
  FaultProxy proxy(server.port());
  constexpr std::size_t step = 61;  // A handshake costs too much to cut at each of its bytes.
  constexpr std::size_t longestGreeting = 20000;
  std::size_t cuts = 0;
  for (std::size_t bytes = 0; bytes < longestGreeting; bytes += step, ++cuts) {
    SCOPED_TRACE("cut after " + std::to_string(bytes) + " bytes");
    const auto driver = openGetLock(database, proxy.port(), trust);
    proxy.cutReplies(bytes, bytes % 2 == 0 ? Ending::fin : Ending::rst);
    try {
      const AcquireResult result = driver->acquire(Claimant{}.request());
      ASSERT_EQ(proxy.fired(), 0U);
      EXPECT_TRUE(granted(result));
      EXPECT_GT(cuts, 30U);
      return;
    } catch (const StoreUnavailable&) {
    } catch (const OutcomeUnknown&) {
    }
    ASSERT_EQ(proxy.fired(), 1U);
  }
  FAIL() << "the greeting never passed whole";
}

TEST_P(GetLockTls, AServerThatFallsSilentInItsGreetingHoldsNobody) {
  FaultProxy proxy(server.port());
  // In its first packet, in the handshake, and in the log-in behind it.
  for (const std::size_t bytes : {20U, 400U, 1200U, 1500U, 1800U, 2200U}) {
    SCOPED_TRACE(bytes);
    const auto driver = openGetLock(database, proxy.port(), trust);
    proxy.set({.kind = ProxyFault::Kind::dropReplies, .bytes = bytes});
    const Instant deadline = in(500ms);
    EXPECT_THROW((void)driver->acquire(Claimant{}.request(deadline)), Error);
    EXPECT_LT(now(), deadline + 3s + schedulingSlack);
    EXPECT_GE(proxy.fired(), 1U);
  }
}

TEST_P(GetLockTls, AReplyMayTakeLongerThanConnecting) {
  EXPECT_EQ(session(trust)->query("SELECT 1; SELECT SLEEP(2) + 7", soon()).number(0), 7U);
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockTls, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
