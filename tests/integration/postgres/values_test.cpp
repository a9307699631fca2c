// Values and shared records, beyond what all stores of them must do.

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "forked_child.h"
#include "kept_rows.h"
#include "lockkeeper/error.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/postgres/value_store.h"
#include "lockkeeper/store/shared_records.h"
#include "lockkeeper/store/value_store.h"
#include "lockkeeper/store_registry.h"
#include "lockkeeper/store_uri.h"
#include "postgres_fixture.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<ValueStore> openValues(const std::string& uri, const std::string& query = "") {
  StoreRegistry registry;
  postgres::use(registry);
  return registry.openValues(uri + "?connectTimeout=10s" + query);
}

/// All its bytes are ones: its numbers modulo 128 are 127.
class Ones final : public Random {
 public:
  void fill(std::span<std::byte> out) override { std::ranges::fill(out, std::byte{255}); }
};

class PostgresValuesTest : public PostgresTest {
 protected:
  std::shared_ptr<ValueStore> values = openValues(store.server.uri(store.scheme));
};

TEST_F(PostgresValuesTest, RowsOfValuesThatHaveEndedAreClearedAway) {
  store.server.execute("TRUNCATE lockkeeper_locks_values");
  values->put("kept", "1", 1h, soon());
  for (int i = 0; i < 300; ++i) values->put("brief" + std::to_string(i), "1", 1ms, soon());
  EXPECT_LE(std::stoi(store.server.ask("SELECT count(*) FROM lockkeeper_locks_values")), 128 + 1);
  EXPECT_EQ(values->get("kept", soon()), "1");
}

TEST_F(PostgresValuesTest, AProcessThatWritesOnceMayClearThemToo) {
  store.server.execute("TRUNCATE lockkeeper_locks_values");
  values->put("brief", "1", 1ms, soon());
  Environment environment;
  environment.random = std::make_shared<Ones>();
  // The first write of those that begin to count there clears.
  postgres::PostgresValues(StoreUri::parse(store.server.uri(store.scheme)), environment)
      .put("kept", "1", 1h, soon());
  EXPECT_EQ(store.server.ask("SELECT count(*) FROM lockkeeper_locks_values"), "1");
}

TEST_F(PostgresValuesTest, AMissingTableIsNamedWithItsSchema) {
  try {
    (void)openValues(store.server.uri(store.scheme), "&table=elsewhere")->get("key", soon());
    FAIL() << "there is no such table";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("values.sql"), std::string::npos) << error.what();
  }
}

TEST_F(PostgresValuesTest, TablesAreMadeWhereThatIsWanted) {
  store.server.execute("DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept AUTHORIZATION keeper");
  const std::string query = "createTable=on&schema=kept&table=own";
  EXPECT_TRUE(openValues(store.server.uri(store.scheme), "&" + query)->add("key", "1", 1h, soon()));
  const auto driver = store.open(query);
  auto& records = *capability<SharedRecords>(*driver);
  EXPECT_TRUE(records.replace("b", "n", std::nullopt, "one", {}, soon()));
  EXPECT_EQ(store.server.ask("SELECT count(*) FROM pg_tables WHERE schemaname = 'kept'"), "2");
}

TEST_F(PostgresValuesTest, AReplyThatIsCutIsNoAnswer) {
  for (std::size_t bytes = 0, whole = 1; bytes < whole; bytes += 11) {
    const auto proxied = openValues(PostgresServer::uri(store.scheme, store.proxy.port()));
    proxied->put("cut", "first", 1h, soon());
    (void)proxied->get("cut", soon());  // Its session knows the statements now.
    store.proxy.set({});
    (void)proxied->get("cut", soon());
    whole = store.proxy.replyBytes();
    store.proxy.cutReplies(bytes, bytes % 2 == 0 ? Ending::fin : Ending::rst);
    EXPECT_THROW((void)proxied->get("cut", soon()), OutcomeUnknown) << bytes;
    store.proxy.passThrough();
    EXPECT_EQ(proxied->get("cut", soon()), "first") << bytes;
  }
}

class PostgresRecordsTest : public PostgresTest {
 protected:
  PostgresRecordsTest() { store.server.execute("TRUNCATE lockkeeper_locks_records"); }

  KeptRows keep(const std::string& name) const {
    return KeptRows(store.server,
                    "SELECT FROM lockkeeper_locks_records WHERE name = '" + name + "' FOR UPDATE");
  }

  const std::shared_ptr<LockDriver> other = store.open();
  SharedRecords& first = *capability<SharedRecords>(*store.direct);
  SharedRecords& second = *capability<SharedRecords>(*other);
};

// A member that has just written must not be missed by the one that changes the rules.
TEST_F(PostgresRecordsTest, AReplacementWaitsForAWriteThatIsUnderWay) {
  first.write("b", "member", "one", std::nullopt, {}, soon());
  // A write gives up after a second, which a busy machine may take for the rest.
  for (int attempt = 0; attempt < 5; ++attempt) {
    const std::array<KnownRecord, 1> known{{{"member", second.read("b", soon()).at(0).stamp}}};
    const std::string rules = "rules" + std::to_string(attempt);
    std::future<void> writing;
    std::future<bool> replacing;
    {
      const KeptRows kept = keep("member");
      writing = std::async(std::launch::async,
                           [&] { first.write("b", "member", "two", std::nullopt, {}, soon()); });
      ASSERT_TRUE(waitUntil([&] { return kept.count("wait_event_type = 'Lock'") == 1; }));
      replacing = std::async(std::launch::async,
                             [&] { return second.replace("b", rules, std::nullopt, "new", known, soon()); });
      ASSERT_TRUE(waitUntil([&] {
        return kept.count("wait_event_type = 'Lock'") == 2 ||
               replacing.wait_for(0s) == std::future_status::ready;
      }));
    }
    try {
      writing.get();
      EXPECT_FALSE(replacing.get()) << "the member has been written again";
      return;
    } catch (const StoreUnavailable&) {
      if (replacing.valid()) replacing.wait();
    }
  }
  FAIL() << "the machine is too busy";
}

// Heartbeats of many processes share the time that a commit takes.
TEST_F(PostgresRecordsTest, WritesDoNotWaitForEachOther) {
  first.write("b", "one", "1", std::nullopt, {}, soon());
  const KeptRows kept = keep("one");
  auto writing = std::async(std::launch::async, [&] {
    EXPECT_THROW((void)first.write("b", "one", "2", std::nullopt, {}, soon()), StoreUnavailable);
  });
  ASSERT_TRUE(waitUntil([&] {
    return kept.count("wait_event_type = 'Lock'") == 1 || writing.wait_for(0s) == std::future_status::ready;
  }));
  EXPECT_NO_THROW(second.write("b", "two", "1", std::nullopt, {}, soon()));
  writing.get();
}

TEST_F(PostgresRecordsTest, InheritedOnesTouchNoSocket) {
  first.write("b", "one", "1", std::nullopt, {}, soon());
  auto values = openValues(store.server.uri(store.scheme));
  values->put("one", "1", 1h, soon());
  const int failedCheck = inForkedChild([&] {
    if (!throwsForked([&] { (void)first.read("b", soon()); })) return 1;
    if (!throwsForked([&] { (void)values->get("one", soon()); })) return 2;
    values.reset();
    return 0;
  });
  EXPECT_EQ(failedCheck, 0);
  EXPECT_EQ(values->get("one", soon()), "1");
  EXPECT_EQ(first.read("b", soon()).size(), 1U);
}

}  // namespace
}  // namespace lockkeeper::test
