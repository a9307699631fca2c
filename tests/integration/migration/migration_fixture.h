#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fleet_stores.h"
#include "lockkeeper/migration/migrating_driver.h"
#include "lockkeeper/migration/state_store.h"
#include "migration_timing.h"
#include "process.h"
#include "redis_server.h"
#include "temp_folder.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {

/// A migration between two databases of one server, with the `lockkeeper` command.
class MigrationTest : public ::testing::Test {
 protected:
  MigrationTest() { configure(oldUri(), newUri()); }

  std::string oldUri() const { return "redis://127.0.0.1:" + std::to_string(redis.port()) + "/1"; }
  std::string newUri() const { return "redis://127.0.0.1:" + std::to_string(redis.port()) + "/2"; }

  void configure(const std::string& from, const std::string& to, const std::string& more = "") {
    writeFile(configuration, "lockkeeper.store = " + to +
                                 "\nlockkeeper.lock.ttl = 2s\nlockkeeper.migration.from = " + from +
                                 "\nlockkeeper.migration.heartbeat = 200ms\n"
                                 "lockkeeper.migration.lease = 1500ms\n"
                                 "lockkeeper.migration.maxTtl = 2s\n"
                                 "lockkeeper.migration.observation = 1s\n" +
                                 more);
  }

  Finished lockkeeper(std::vector<std::string> words) const {
    words.insert(words.begin(), LOCKKEEPER_COMMAND);
    words.insert(words.begin() + 2, {"--config", configuration});
    return runToEnd(words);
  }
  std::string status() const {
    const Finished finished = lockkeeper({"migrate", "status"});
    EXPECT_EQ(finished.exitCode, 0) << finished.errors;
    return finished.output;
  }
  bool statusSays(const std::string& text) const {
    return waitUntil([&] { return status().find(text) != std::string::npos; }, std::chrono::seconds{40});
  }
  void advance(const std::string& rule) const {
    const Finished finished = lockkeeper({"migrate", "advance", rule});
    EXPECT_EQ(finished.exitCode, 0) << finished.errors;
  }

  /// Rules that count at once, for all keys.
  void decree(migration::Phase phase) const {
    migration::StateStore stateStore(openStateStore(newUri()), "migration");
    const Instant soon = systemClock()->now() + std::chrono::seconds{10};
    const migration::Rules rules(phase);
    const auto state = stateStore.read(soon);
    ASSERT_TRUE(stateStore.change(state, state.version + 1, rules, rules, soon));
  }

  /// A process that moves from `from` to newUri().
  std::vector<std::string> worker(const std::string& from, const std::string& deadly = "") const {
    return {MIGRATING_WORKER, from, newUri(), newUri(), folder.path(), deadly};
  }

  RedisServer redis;
  TempFolder folder;
  std::filesystem::path configuration = folder / "fleet.properties";
};

}  // namespace lockkeeper::test
