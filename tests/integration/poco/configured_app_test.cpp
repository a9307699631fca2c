#include <gtest/gtest.h>

#include <filesystem>

#include "process.h"
#include "redis_server.h"
#include "temp_folder.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

constexpr auto longEnough = std::chrono::seconds{60};

const std::string settings =
    "lockkeeper.namespace = shop\nlockkeeper.lock.ttl = 20s\n"
    "lockkeeper.limits.sms.rate = 2/day\n";

class ConfiguredApp : public ::testing::Test {
 protected:
  Process start(const std::string& store, const std::string& more = settings,
                std::map<std::string, std::string> environment = {}) {
    std::filesystem::remove(folder / "output");
    writeFile(folder / "shop.properties", "lockkeeper.store = " + store + "\n" + more);
    return Process({LOCKKEEPER_CONFIGURED_APP, "--config=" + (folder / "shop.properties").string()},
                   {.environment = std::move(environment),
                    .standardOutput = folder / "output",
                    .standardError = folder / "errors"});
  }

  void waitTillReady() {
    const auto ready = [&] { return readFile(folder / "output").ends_with("ready\n"); };
    ASSERT_TRUE(waitUntil(ready, longEnough)) << readFile(folder / "errors");
  }

  /// What it wrote till it was asked to end.
  std::string outputOn(const std::string& store) {
    Process app = start(store);
    waitTillReady();
    app.signal(SIGTERM);
    EXPECT_EQ(app.waitFor(longEnough), 0);
    return readFile(folder / "output");
  }

  void refuses(const std::string& store, const std::string& more, const std::string& message) {
    Process app = start(store, more);
    EXPECT_NE(app.waitFor(longEnough).value_or(0), 0);
    EXPECT_NE(readFile(folder / "errors").find(message), std::string::npos) << readFile(folder / "errors");
    EXPECT_EQ(readFile(folder / "errors").find("s3cr3t"), std::string::npos);
  }

  const TempFolder folder;
};

TEST_F(ConfiguredApp, RunsTheSameOnAnotherStoreByOneLine) {
  const RedisServer redis({.password = "s3cr3t"});
  const std::string expected = "sold once\nsent\nsent\nrefused\nready\n";
  EXPECT_EQ(outputOn("memory:"), expected);
  EXPECT_EQ(outputOn("redis://:s3cr3t@127.0.0.1:" + std::to_string(redis.port()) + "/0"), expected);
}

TEST_F(ConfiguredApp, LocksWhereAndHowTheFileSays) {
  const RedisServer redis({.password = "s3cr3t"});
  writeFile(folder / "password", "s3cr3t\n");
  Process app = start("redis://:${SHOP_PASSWORD}@127.0.0.1:" + std::to_string(redis.port()) + "/0", settings,
                      {{"SHOP_PASSWORD", "s3cr3t"}});
  waitTillReady();
  const std::string ttl = redis.command({"PTTL", "shop:order:42"});
  EXPECT_GT(std::stoi(ttl), 10'000);
  EXPECT_LE(std::stoi(ttl), 20'000);
  app.signal(SIGTERM);
  EXPECT_EQ(app.waitFor(longEnough), 0);
  EXPECT_EQ(redis.command({"EXISTS", "shop:order:42"}), "0");
  Process byFile = start("redis://127.0.0.1:" + std::to_string(redis.port()) +
                         "/0?passwordFile=" + (folder / "password").string());
  waitTillReady();
  EXPECT_EQ(redis.command({"EXISTS", "shop:order:42"}), "1");
}

TEST_F(ConfiguredApp, EndsInBoundedTimeWhileTheStoreIsFrozen) {
  RedisServer redis;
  Process app = start(redis.uri());
  waitTillReady();
  redis.pause();
  app.signal(SIGTERM);
  EXPECT_EQ(app.waitFor(longEnough), 0) << "still there";
}

TEST_F(ConfiguredApp, SaysWhatIsWrongAndStartsNothing) {
  refuses("redis://:s3cr3t@127.0.0.1, redis://:s3cr3t@127.0.0.2", settings,
          "lockkeeper.store: the store's URI is followed by another one: one store can be named");
  refuses("mysql+getlock://u:s3cr3t@h/shop", settings,
          "link lockkeeper::mysql and call lockkeeper::mysql::use(stores)");
  refuses("memory:", "lockkeeper.lock.tll = 3s\n",
          "the setting 'lockkeeper.lock.tll' is unknown: did you mean lockkeeper.lock.ttl?");
  EXPECT_EQ(readFile(folder / "output"), "");
}

TEST_F(ConfiguredApp, ListsItsSettingsAndEnds) {
  const Finished help = runToEnd({LOCKKEEPER_CONFIGURED_APP, "--help-lockkeeper"});
  EXPECT_EQ(help.exitCode, 0) << help.errors;
  EXPECT_NE(help.output.find("\nlockkeeper.lock.ttl = duration [30s]\n"), std::string::npos) << help.output;
  EXPECT_NE(help.output.find("\nlockkeeper.limits.*.burst = number [the rate's count]\n"), std::string::npos);
}

}  // namespace
}  // namespace lockkeeper::test
