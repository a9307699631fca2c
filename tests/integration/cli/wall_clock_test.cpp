// A holder whose wall clock is wrong, on each store.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "child_clock.h"
#include "database_server.h"
#include "etcd_cluster.h"
#include "process.h"
#include "redis_server.h"
#include "redlock_uri.h"
#include "temp_folder.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

struct NamedStore {
  const char* name;
  std::function<std::string()> uri;  ///< Starts its servers with the first call.
};

void PrintTo(const NamedStore& store, std::ostream* out) { *out << store.name; }

std::string addressOfRedis() {
  static const RedisServer server;
  return "127.0.0.1:" + std::to_string(server.port());
}

std::string uriOfAQuorum() {
  static const RedisServer nodes[3];
  return redlockUri(nodes, "restartGuard=off");
}

std::string databaseUri(const std::string& scheme) {
  static DatabaseServer server(Brand::mariadb);
  const std::string uri = server.uri(server.newDatabase());
  return scheme + uri.substr(uri.find("://")) + "?createTable=true";
}

std::string uriOfEtcd() {
  static const EtcdCluster cluster({.nodes = 1});
  return cluster.uri();
}

const NamedStore stores[] = {
    {"Redis", [] { return "redis://" + addressOfRedis() + "/1"; }},
    {"Legacy", [] { return "redis+legacy://" + addressOfRedis() + "/2"; }},
    {"Redlock", uriOfAQuorum},
    {"GetLock", [] { return databaseUri("mysql+getlock"); }},
    {"Version", [] { return databaseUri("mysql+version"); }},
    {"Etcd", uriOfEtcd},
};

class HoldersWallClock : public ::testing::TestWithParam<NamedStore> {
 protected:
  ProcessOptions withStore() const {
    ProcessOptions options;
    options.environment["LOCKKEEPER_STORE"] = uri;
    return options;
  }
  /// Whether somebody whose clock is right gets the lock.
  bool isFree() const {
    return runToEnd({LOCKKEEPER_COMMAND, "run", "k", "--", "true"}, withStore()).exitCode == 0;
  }

  const std::string uri = GetParam().uri();
  const ChildClock clock;
  const TempFolder folder;
};

TEST_P(HoldersWallClock, ChangesNothingWhereverItJumps) {
  constexpr std::int64_t day = 86400;
  clock.jump(+day);
  ProcessOptions options = withStore();
  options.environment.merge(clock.environment());
  const std::string work = "touch " + (folder / "up").string() + "; while [ ! -e " +
                           (folder / "done").string() + " ]; do sleep 0.05; done";
  Process holder({LOCKKEEPER_COMMAND, "run", "--ttl", "2s", "k", "--", "sh", "-c", work}, options);
  ASSERT_TRUE(waitUntil([&] { return std::filesystem::exists(folder / "up"); }));
  for (const std::int64_t seconds : {-day, +3600L}) {
    clock.jump(seconds);
    const auto end = std::chrono::steady_clock::now() + 3s;  // longer than its lease
    while (std::chrono::steady_clock::now() < end) {
      ASSERT_FALSE(isFree());
      std::this_thread::sleep_for(100ms);
    }
  }
  writeFile(folder / "done", "");
  EXPECT_EQ(holder.waitFor(20s), 0) << "76 would say that the lock was lost";
  EXPECT_TRUE(isFree());
}

INSTANTIATE_TEST_SUITE_P(Stores, HoldersWallClock, ::testing::ValuesIn(stores),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace lockkeeper::test
