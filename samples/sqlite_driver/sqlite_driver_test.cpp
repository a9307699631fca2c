// The suite that every driver must pass, on a clock that the tests set.
#include "sqlite_driver.h"

#include <lockkeeper/lock_manager.h>
#include <lockkeeper/store_registry.h>
#include <lockkeeper/testing/driver_contract.h>
#include <lockkeeper/testing/fake_clock.h>
#include <lockkeeper/testing/history/check.h>
#include <lockkeeper/testing/history/recorder.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <vector>

namespace history = lockkeeper::testing::history;
using namespace std::chrono_literals;
using lockkeeper::testing::DriverContract;
using lockkeeper::testing::DriverFactory;
using lockkeeper::testing::FakeClock;

namespace {

// A new file, which is removed when the program ends.
const std::string& file() {
  static const struct File {
    std::string path = std::filesystem::temp_directory_path() / ("locks-" + std::to_string(getpid()) + ".db");
    ~File() {
      for (const char* const part : {"", "-shm", "-wal"}) std::filesystem::remove(path + part);
    }
  } made;
  return made.path;
}

DriverFactory sqlite() {
  const auto clock = std::make_shared<FakeClock>();
  return {.name = "sqlite",
          .open = [clock] { return sqliteDriver(file(), clock); },
          .fence = lockkeeper::FencePromise::whileStoreKeepsWrites,
          .breakable = true,
          .clock = clock,
          .advance = [clock](std::chrono::milliseconds length) { clock->advance(length); }};
}

TEST(SqliteDriver, IsOpenedByItsScheme) {
  lockkeeper::StoreRegistry registry;
  registry.add("sqlite", [](const lockkeeper::StoreUri& uri, const lockkeeper::Environment& environment) {
    uri.allowOnly({});  // it has no parameters
    return sqliteDriver(uri.path(), environment.clock);
  });
  lockkeeper::LockManager locks(registry.open("sqlite://" + file()));
  EXPECT_TRUE(locks.tryLock("order 42"));
}

TEST(SqliteDriver, HasHistoriesThatBreakNoRule) {
  history::History told({.fences = true});
  history::Recorder recorder([&](const history::Record& each) { told.add(each); });
  std::vector<std::jthread> clients;
  for (const char* const name : {"p1", "p2", "p3", "p4"}) {
    clients.emplace_back([&recorder, name] {
      lockkeeper::LockManager locks(sqliteDriver(file(), lockkeeper::systemClock()));
      for (int i = 0; i < 20; ++i)
        (void)history::RecordedLock::tryLock(recorder, name, locks, "k", {.ttl = 2s, .waitFor = 1s});
    });
  }
  clients.clear();
  EXPECT_EQ(history::check(told).text(), "");
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Sqlite, DriverContract, ::testing::Values(sqlite()),
                         lockkeeper::testing::factoryName);
