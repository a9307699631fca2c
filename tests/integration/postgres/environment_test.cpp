// What the process, the account or a stranger could change about a log-in and its statements.

#include <signal.h>

#include <atomic>
#include <string>
#include <utility>

#include "environment_variable.h"
#include "lockkeeper/error.h"
#include "postgres_fixture.h"
#include "refusal.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

using PostgresEnvironment = PostgresTest;

std::string logInRefusal(const std::shared_ptr<LockDriver>& driver) {
  return refusalOf<ConfigError>([&] { (void)driver->acquire(Claimant{}.request()); });
}

TEST_F(PostgresEnvironment, VariablesOfTheLibraryChooseNothing) {
  constexpr std::pair<const char*, const char*> variables[] = {{"PGHOSTADDR", "127.0.0.9"},
                                                               {"PGSSLMODE", "verify-full"},
                                                               {"PGSSLROOTCERT", "/nowhere"},
                                                               {"PGSSLCERT", "/nowhere"},
                                                               {"PGCLIENTENCODING", "LATIN1"},
                                                               {"PGTARGETSESSIONATTRS", "standby"},
                                                               {"PGCONNECT_TIMEOUT", "1"},
                                                               {"PGPASSFILE", "/nowhere"},
                                                               {"PGPASSWORD", "wrong"},
                                                               {"PGCHANNELBINDING", "require"},
                                                               {"PGSSLMINPROTOCOLVERSION", "none"}};
  for (const auto& [name, value] : variables) {
    SCOPED_TRACE(name);
    const EnvironmentVariable variable(name, value);
    EXPECT_EQ(logInRefusal(store.open()), "accepted");
  }
}

TEST_F(PostgresEnvironment, VariablesThatTheLibraryWouldObeyAreRefused) {
  for (const char* name : {"PGOPTIONS", "PGSERVICE"}) {
    const EnvironmentVariable variable(name, "-c statement_timeout=1");
    EXPECT_NE(logInRefusal(store.open()).find(name), std::string::npos);
  }
  const std::string uri =
      "postgres+version://keeper@127.0.0.1:" + std::to_string(store.server.port()) + "/locks";
  const EnvironmentVariable password("PGPASSWORD", PostgresServer::password);
  const std::string said = logInRefusal(openPostgres(uri));
  EXPECT_NE(said.find("PGPASSWORD"), said.npos) << said;
  EXPECT_EQ(said.find(PostgresServer::password), said.npos) << said;
  const EnvironmentVariable address("PGHOSTADDR", "127.0.0.9");
  const auto bySocket = store.open("socket=" + store.server.socketFolder());
  EXPECT_NE(logInRefusal(bySocket).find("PGHOSTADDR"), std::string::npos);
}

// Everything that decides about a session is found in the catalogue, whatever the account's path is.
TEST_F(PostgresEnvironment, AnotherSchemaAheadOfTheCataloguesChangesNothing) {
  store.server.execute(
      "DROP SCHEMA IF EXISTS evil CASCADE; CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO keeper;"
      "CREATE FUNCTION evil.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true';"
      "CREATE FUNCTION evil.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS 'SELECT $2';"
      "ALTER ROLE keeper SET search_path = 'evil', 'pg_catalog'");
  const auto driver = store.open();
  const std::string said =
      refusalOf<Error>([&] { EXPECT_TRUE(granted(driver->acquire(Claimant{}.request()))); });
  store.server.execute("ALTER ROLE keeper RESET search_path; DROP SCHEMA evil CASCADE");
  EXPECT_EQ(said, "accepted");
}

/// The machine's clock, which a test sets ahead.
class AheadClock final : public Clock {
 public:
  Instant now() const noexcept override { return systemClock()->now() + ahead_.load(); }
  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    systemClock()->wait(held, wakeUp, until - ahead_.load());
  }
  void advance(std::chrono::nanoseconds length) { ahead_ = ahead_.load() + length; }

 private:
  std::atomic<std::chrono::nanoseconds> ahead_{};
};

// It was told to end, and cannot begin with a statement any more.
TEST_F(PostgresEnvironment, AServersProcessThatDoesNotEndStopsOthersForAMinute) {
  const auto clock = std::make_shared<AheadClock>();
  const auto driver = openPostgres(store.server.uri(PostgresStore::scheme), "", {.clock = clock});
  const Claimant who;
  const auto request = [&](const Claimant& claimant) { return claimant.request(clock->now() + 500ms); };
  ASSERT_TRUE(granted(driver->acquire(request(who))));
  const std::string newest =
      "SELECT pid FROM pg_stat_activity WHERE usename = 'keeper' ORDER BY backend_start DESC LIMIT 1";
  const pid_t process = std::stoi(store.server.ask(newest));
  ::kill(process, SIGSTOP);
  EXPECT_THROW((void)driver->acquire(request(Claimant{})), OutcomeUnknown);
  EXPECT_THROW((void)driver->acquire(request(Claimant{})), StoreUnavailable);
  clock->advance(61s);
  EXPECT_TRUE(granted(driver->acquire(request(Claimant{}))));
  ::kill(process, SIGCONT);
}

}  // namespace
}  // namespace lockkeeper::test
