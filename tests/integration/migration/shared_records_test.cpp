#include <algorithm>
#include <array>
#include <utility>

#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/memory/memory_driver.h"
#include "migration_fixture.h"
#ifdef LOCKKEEPER_WITH_POSTGRES
#include "postgres_server.h"
#endif

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// What every store that keeps shared records must do.
class Records : public ::testing::TestWithParam<std::string> {
 protected:
  Records() {
    if (GetParam() == "Memory") {
      driver = std::make_shared<MemoryDriver>();
    } else if (GetParam() == "Redis") {
      redis_ = std::make_unique<RedisServer>();
      driver = openStore(redis_->uri());
    } else {
#ifdef LOCKKEEPER_WITH_POSTGRES
      static PostgresServer server;
      static const bool isReady = (server.makeLocks(), true);
      if (isReady) server.execute("TRUNCATE lockkeeper_locks_records");
      driver = openStore(server.uri("postgres+version") + "?connectTimeout=10s");
#endif
    }
    store = capability<SharedRecords>(driver);
  }

  static Instant soon() { return systemClock()->now() + 10s; }
  static std::optional<SharedRecord> named(const std::vector<SharedRecord>& all, const std::string& name) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const SharedRecord& each) { return each.name == name; });
    return found == all.end() ? std::nullopt : std::optional(*found);
  }

  std::unique_ptr<RedisServer> redis_;
  std::shared_ptr<LockDriver> driver;
  std::shared_ptr<SharedRecords> store;
};

TEST_P(Records, ShowsWhatWasWrittenToWhoeverLooks) {
  const std::string odd("line\nline\0% end ", 16);
  EXPECT_TRUE(store->write("b", "first", "one", std::nullopt, {}, soon()).empty());
  store->write("b", "second", odd, 1min, {}, soon());
  const auto all = store->read("b", soon());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(named(all, "first")->text, "one");
  EXPECT_EQ(named(all, "second")->text, odd);
  EXPECT_TRUE(store->read("another", soon()).empty());
}

TEST_P(Records, ShowsAWriterWhatItWantsAndNoTextThatItKnows) {
  store->write("b", "known", "one", std::nullopt, {}, soon());
  store->write("b", "new", "two", std::nullopt, {}, soon());
  store->write("b", "over", "three", 1ms, {}, soon());
  ASSERT_TRUE(waitUntil([&] { return store->read("b", soon()).size() == 2; }));
  store->write("b", "over", "three", 1ms, {}, soon());
  ASSERT_TRUE(waitUntil([&] {
    const std::array<WantedRecord, 1> wanted{{{"over"}}};
    return store->write("b", "writer", "four", std::nullopt, wanted, soon()).empty();
  }));
  const std::uint64_t stamp = named(store->read("b", soon()), "known")->stamp;
  const std::array<WantedRecord, 4> wanted{{{"known", stamp}, {"new", stamp - 1}, {"none"}, {"writer"}}};
  const auto seen = store->write("b", "writer", "five", std::nullopt, wanted, soon());
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(named(seen, "known")->text, "");
  EXPECT_EQ(named(seen, "known")->stamp, stamp);
  EXPECT_EQ(named(seen, "new")->text, "two");
  EXPECT_EQ(named(seen, "writer")->text, "five");
}

TEST_P(Records, TellsHowOldARecordIs) {
  store->write("b", "n", "one", std::nullopt, {}, soon());
  ASSERT_TRUE(waitUntil([&] { return named(store->read("b", soon()), "n")->age >= 400ms; }));
  const std::array<WantedRecord, 1> wanted{{{"n"}}};
  EXPECT_LT(store->write("b", "n", "one", std::nullopt, wanted, soon()).at(0).age, 400ms) << "written anew";
}

TEST_P(Records, DropsARecordWhenItsTimeIsOver) {
  store->write("b", "short", "one", 100ms, {}, soon());
  store->write("b", "long", "one", std::nullopt, {}, soon());
  EXPECT_TRUE(waitUntil([&] { return store->read("b", soon()).size() == 1; }));
  EXPECT_TRUE(named(store->read("b", soon()), "long"));
}

TEST_P(Records, ReplacesOnlyWhatIsExpected) {
  EXPECT_FALSE(store->replace("b", "n", "one", "two", {}, soon()));
  EXPECT_TRUE(store->replace("b", "n", std::nullopt, "one", {}, soon()));
  EXPECT_FALSE(store->replace("b", "n", std::nullopt, "two", {}, soon()));
  EXPECT_FALSE(store->replace("b", "n", "zero", "two", {}, soon()));
  EXPECT_TRUE(store->replace("b", "n", "one", "two", {}, soon()));
  EXPECT_EQ(named(store->read("b", soon()), "n")->text, "two");
}

TEST_P(Records, ReplacesOnlyWhileAllOthersAreKnown) {
  store->write("b", "first", "one", std::nullopt, {}, soon());
  const std::array<KnownRecord, 2> known{{{"gone"}, {"first"}}};
  EXPECT_TRUE(store->replace("b", "n", std::nullopt, "one", known, soon()));
  store->write("b", "second", "one", std::nullopt, {}, soon());
  EXPECT_FALSE(store->replace("b", "n", "one", "two", known, soon()));
  EXPECT_FALSE(store->replace("b", "n", "one", "two", std::array{KnownRecord{"second"}}, soon()));
  const std::array<KnownRecord, 2> both{{{"first"}, {"second"}}};
  EXPECT_TRUE(store->replace("b", "n", "one", "two", both, soon()));
  EXPECT_TRUE(store->replace("b", "n", "two", "three", both, soon())) << "its own record needs no mention";
}

TEST_P(Records, ReplacesOnlyWhileAKnownOneHasNotBeenWrittenAgain) {
  store->write("b", "same", "one", std::nullopt, {}, soon());
  store->write("b", "any", "one", std::nullopt, {}, soon());
  const std::uint64_t stamp = named(store->read("b", soon()), "same")->stamp;
  const std::array<KnownRecord, 2> known{{{"same", stamp}, {"any"}}};
  store->write("b", "any", "one", std::nullopt, {}, soon());
  EXPECT_TRUE(store->replace("b", "n", std::nullopt, "one", known, soon()));
  store->write("b", "same", "one", std::nullopt, {}, soon());
  EXPECT_FALSE(store->replace("b", "n", "one", "two", known, soon()));
}

TEST_P(Records, ShowThatTheyWereWrittenAgain) {
  const auto stamp = [&] { return named(store->read("b", soon()), "n")->stamp; };
  store->write("b", "n", "one", std::nullopt, {}, soon());
  std::uint64_t last = stamp();
  EXPECT_EQ(stamp(), last);
  const std::array<WantedRecord, 1> wanted{{{"n"}}};
  for (int i = 0; i < 50; ++i) {
    const std::uint64_t next = store->write("b", "n", "one", std::nullopt, wanted, soon()).at(0).stamp;
    EXPECT_NE(std::exchange(last, next), next) << "also within a millisecond";
  }
  EXPECT_TRUE(store->replace("b", "n", "one", "two", {}, soon()));
  EXPECT_NE(stamp(), last);
}

TEST_P(Records, IsNoLock) {
  store->write("b", "n", "one", std::nullopt, {}, soon());
  auto& locks = *capability<Browsable>(*driver);
  int listed = 0;
  locks.list(
      "", [&](std::string_view, const Holder&) { return ++listed < 10; }, soon());
  EXPECT_EQ(listed, 0);
}

const auto recordsName = [](const auto& of) { return of.param; };

INSTANTIATE_TEST_SUITE_P(Stores, Records, ::testing::Values("Memory", "Redis"), recordsName);
#ifdef LOCKKEEPER_WITH_POSTGRES
INSTANTIATE_TEST_SUITE_P(Rows, Records, ::testing::Values("Postgres"), recordsName);
#endif

}  // namespace
}  // namespace lockkeeper::test
