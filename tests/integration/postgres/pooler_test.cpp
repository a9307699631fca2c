// Behind PgBouncer in transaction mode, where each transaction may be on another session of the server.

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "free_port.h"
#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "postgres_fixture.h"
#include "succeeds_in_the_end.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// PgBouncer, which gives its clients two sessions of the server.
class Pooler {
 public:
  explicit Pooler(std::uint16_t server) {
    writeFile(folder_ / "users", "\"keeper\" \"p@ss/word\"\n");
    writeFile(folder_ / "ini", "[databases]\nlocks = host=127.0.0.1 port=" + std::to_string(server) +
                                   " pool_size=2\n[pgbouncer]\nlisten_addr = 127.0.0.1\nunix_socket_dir =\n"
                                   "pool_mode = transaction\nauth_type = plain\nauth_file = " +
                                   (folder_ / "users").string() + "\nlisten_port = " + std::to_string(port) +
                                   "\n");
    for (const auto& file : {folder_.path(), folder_ / "users", folder_ / "ini"})
      std::filesystem::permissions(file, std::filesystem::perms::others_all,
                                   std::filesystem::perm_options::add);
    // It refuses to run as root.
    process_ = std::make_unique<Process>(
        std::vector<std::string>{"setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups",
                                 "--pdeathsig", "KILL", "--", "/usr/sbin/pgbouncer",
                                 (folder_ / "ini").string()},
        ProcessOptions{.standardOutput = folder_ / "log", .standardError = folder_ / "log"});
    const auto driver = openPostgres(uri(), "connectTimeout=10s");
    EXPECT_TRUE(waitUntil([&] {
      try {
        return granted(driver->acquire(Claimant{}.request()));
      } catch (const StoreUnavailable&) {
        return false;
      }
    })) << readFile(folder_ / "log");
  }

  std::string uri() const { return PostgresServer::uri("postgres+version", port); }

  const std::uint16_t port = freePort();

 private:
  TempFolder folder_;
  std::unique_ptr<Process> process_;
};

class PostgresPooler : public PostgresTest {
 protected:
  Pooler pooler{store.server.port()};
};

TEST_F(PostgresPooler, OneHolderAtATimeWhateverTheServersIsolationIs) {
  for (const char* isolation : {"read committed", "serializable"}) {
    SCOPED_TRACE(isolation);
    store.server.execute(std::string("ALTER ROLE keeper SET default_transaction_isolation = '") + isolation +
                         "'");
    store.server.endSessions();
    const std::string key = Claimant{}.key;
    std::atomic<int> inside = 0;
    std::atomic<int> turns = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        LockManager locks(openPostgres(pooler.uri(), "connectTimeout=10s"));
        for (int turn = 0; turn < 5; ++turn) {
          const Lock lock = locks.lock(key, {.ttl = 30s, .waitFor = 20s});
          EXPECT_EQ(++inside, 1);
          ++turns;
          --inside;
        }
      });
    }
    threads.clear();
    EXPECT_EQ(turns, 20);
    store.server.execute("ALTER ROLE keeper RESET ALL");
  }
}

TEST_F(PostgresPooler, SharesAreRenewedAndReleased) {
  LockManager locks(openPostgres(pooler.uri(), "connectTimeout=10s"));
  const std::string key = Claimant{}.key;
  auto first = locks.lockShared(key, {.ttl = 30s});
  auto second = locks.lockShared(key, {.ttl = 30s});
  EXPECT_NO_THROW(first.renew());
  EXPECT_FALSE(locks.tryLock(key));
  EXPECT_EQ(first.release(), ReleaseResult::released);
  EXPECT_EQ(second.release(), ReleaseResult::released);
  EXPECT_TRUE(locks.tryLock(key));
}

// What we set for our transactions must not reach those of others, who use the same sessions.
TEST_F(PostgresPooler, OthersOnTheSameSessionsKeepTheirSettings) {
  const auto driver = openPostgres(pooler.uri(), "connectTimeout=10s");
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(granted(driver->acquire(Claimant{}.request())));
  const auto shown =
      runToEnd({"psql", "-X", "-A", "-t", "-c",
                "SELECT current_setting('lock_timeout') || current_setting('statement_timeout') || "
                "current_setting('search_path')",
                pooler.uri().replace(0, sizeof("postgres+version") - 1, "postgres")},
               {.environment = {{"PGSSLMODE", "disable"}}});
  EXPECT_EQ(shown.output, "00\"$user\", public\n") << shown.errors;
}

// Nobody can end the session of the server on which it comes.
TEST_F(PostgresPooler, AClaimThatWasWithdrawnTakesNothing) {
  FaultProxy proxy(pooler.port);
  const auto proxied =
      openPostgres(PostgresServer::uri("postgres+version", proxy.port()), "connectTimeout=10s");
  ASSERT_TRUE(granted(proxied->acquire(Claimant{}.request())));
  for (const std::optional<Share> share : {std::optional<Share>(), std::optional(Share{1, 2})}) {
    Claimant who;
    who.share = share;
    proxy.set({.kind = ProxyFault::Kind::hold, .text = "ON CONFLICT (lock_key"});
    const Instant deadline = in(500ms);
    {
      const std::jthread ending([&] {
        if (waitUntil([&] { return proxy.fired() > 0; })) proxy.endHeldConnections(Ending::rst);
      });
      EXPECT_THROW((void)proxied->acquire(who.request(deadline)), OutcomeUnknown);
    }
    EXPECT_EQ(proxied->release(who.claim(), soon()), ReleaseOutcome::notOwner);
    ASSERT_TRUE(waitUntil([&] { return now() > deadline; }));
    EXPECT_TRUE(proxy.deliverHeld());
    EXPECT_TRUE(store.isFree(who.key));
    ASSERT_TRUE(granted(proxied->acquire(who.request())));
  }
}

// The pooler goes on with another server, and its clients do not notice.
TEST(PostgresPoolerOfTwo, AStandbyAnswersNothing) {
  PostgresServer primary{{"wal_level=replica"}};
  primary.makeLocks();
  const PostgresServer standby{primary, {"hot_standby=on"}};
  FaultProxy way(primary.port());
  const Pooler pooler(way.port());
  const auto driver = openPostgres(pooler.uri(), "connectTimeout=10s");
  const Claimant who;
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  way.leadTo(standby.port());
  way.endConnections(Ending::fin);
  EXPECT_THROW((void)driver->holder(who.key, soon()), StoreUnavailable);
  way.leadTo(primary.port());
  way.endConnections(Ending::fin);
  succeedsInTheEnd([&] { EXPECT_TRUE(driver->holder(who.key, soon())); });
}

}  // namespace
}  // namespace lockkeeper::test
