#include <algorithm>
#include <chrono>

#include "cli_fixture.h"
#include "free_port.h"

namespace lockkeeper::test {
namespace {

using LimitCommand = CommandTest;

TEST_F(LimitCommand, AllowsTheBurstAndThenSaysWhenToTryAgain) {
  const std::vector<std::string> take{"limit", "--rate", "2/day", "--burst", "3", "sms:+49"};
  for (const std::string left : {"2", "1", "0"}) {
    const Finished allowed = lockkeeper(take);
    EXPECT_EQ(allowed.exitCode, 0) << allowed.errors;
    EXPECT_EQ(allowed.output, "allowed, " + left + " left\n");
  }
  const Finished refused = lockkeeper(take);
  EXPECT_EQ(refused.exitCode, 75);
  EXPECT_EQ(refused.output.find("refused, retry after "), 0U) << refused.output;
  EXPECT_EQ(refused.errors, "");
}

TEST_F(LimitCommand, PeekTakesNothingAndResetForgets) {
  const std::vector<std::string> policy{"limit", "-r", "1/day", "k"};
  const auto with = [&](const char* option) {
    auto line = policy;
    line.insert(line.end() - 1, option);
    return lockkeeper(line);
  };
  for (int look = 0; look < 2; ++look) EXPECT_EQ(with("--peek").output, "allowed, 1 left\n");
  EXPECT_EQ(lockkeeper(policy).exitCode, 0);
  EXPECT_EQ(with("--peek").exitCode, 75);
  EXPECT_EQ(with("--reset").output, "forgotten\n");
  EXPECT_EQ(with("--peek").exitCode, 0);
  EXPECT_EQ(lockkeeper({"limit", "-r", "1/day", "--reset", "--json", "k"}).output, "{\"forgotten\":true}\n");
}

TEST_F(LimitCommand, WaitsToBeAllowed) {
  const std::vector<std::string> take{"limit", "--rate", "5/s", "--burst", "1", "--wait", "20s", "k"};
  for (int call = 0; call < 3; ++call) EXPECT_EQ(lockkeeper(take).exitCode, 0);
}

TEST_F(LimitCommand, ReadsItsLimitFromTheConfiguration) {
  writeFile(folder / "shop.properties",
            "lockkeeper.store = " + redis.uri() + "\nlockkeeper.namespace = shop\n" +
                "lockkeeper.limits.sms.rate = 1/day\nlockkeeper.limits.sms.burst = 2\n" +
                "lockkeeper.limits.sms.kind = leaky-meter\n");
  const std::vector<std::string> take{"limit", "--config", file("shop.properties"), "--name", "sms", "--cost",
                                      "2",     "k"};
  EXPECT_EQ(lockkeeper(take).exitCode, 0);
  EXPECT_EQ(lockkeeper(take).exitCode, 75);
  EXPECT_EQ(redis.command({"EXISTS", ":lockkeeper:b:shop:sms:k"}), "1");
  writeFile(folder / "shop.properties",
            "lockkeeper.store = " + redis.uri() + "\nlockkeeper.limits.sms.rate = sometimes\n");
  const Finished wrong = lockkeeper(take);
  EXPECT_EQ(wrong.exitCode, 78);
  EXPECT_NE(wrong.errors.find("sometimes"), std::string::npos) << wrong.errors;
}

TEST_F(LimitCommand, DecidesWithoutTheStoreAsTheConfigurationSays) {
  const auto outcome = [&](const std::string& outage) {
    writeFile(folder / "shop.properties",
              "lockkeeper.store = redis://127.0.0.1:" + std::to_string(freePort()) +
                  "\nlockkeeper.limits.sms.rate = 1/day\n" + "lockkeeper.limits.sms.outage = " + outage +
                  "\n");
    return lockkeeper({"limit", "--config", file("shop.properties"), "--name", "sms", "k"});
  };
  for (const char* const lets : {"open", "local"}) {
    const Finished allowed = outcome(lets);
    EXPECT_EQ(allowed.exitCode, 0) << lets << allowed.errors;
    EXPECT_EQ(allowed.output, "allowed\n");
    EXPECT_NE(allowed.errors.find("127.0.0.1"), std::string::npos) << allowed.errors;
  }
  EXPECT_EQ(outcome("closed").exitCode, 69);
}

TEST_F(LimitCommand, AsksTheStoreNoLongerThanTheConfigurationSays) {
  writeFile(folder / "shop.properties", "lockkeeper.store = " + redis.uri() + "?ioTimeout=30s" +
                                            "\nlockkeeper.limiter.operationTimeout = 100ms\n"
                                            "lockkeeper.limits.sms.rate = 1/day\n"
                                            "lockkeeper.limits.sms.outage = open\n");
  redis.pause();
  const auto begun = std::chrono::steady_clock::now();
  const Finished allowed = lockkeeper({"limit", "--config", file("shop.properties"), "--name", "sms", "k"});
  const auto took = std::chrono::steady_clock::now() - begun;
  redis.resume();
  EXPECT_EQ(allowed.output, "allowed\n") << allowed.errors;
  EXPECT_LT(took, std::chrono::seconds{4});
}

TEST_F(LimitCommand, NamesMistakesInOneLine) {
  const auto refuses = [&](const std::vector<std::string>& line, int exitCode, const std::string& named) {
    const Finished finished = lockkeeper(line);
    EXPECT_EQ(finished.exitCode, exitCode) << finished.errors;
    EXPECT_EQ(finished.output, "");
    EXPECT_NE(finished.errors.find(named), std::string::npos) << finished.errors;
    EXPECT_EQ(std::count(finished.errors.begin(), finished.errors.end(), '\n'), 1) << finished.errors;
  };
  refuses({"limit", "k"}, 64, "--rate");
  refuses({"limit", "--rate", "often", "k"}, 64, "often");
  refuses({"limit", "--rate", "1/day", "--burst", "1000000", "k"}, 64, "36525");
  refuses({"limit", "--rate", "2/s", "--cost", "3", "k"}, 64, "3");
  refuses({"limit", "--rate", "2/s", "--cost", "much", "k"}, 64, "much");
  refuses({"limit", "--rate", "2/s"}, 64, "KEY");
  refuses({"limit", "--store", "redis://127.0.0.1:1", "--rate", "2/s", "k"}, 69, "127.0.0.1");
}

}  // namespace
}  // namespace lockkeeper::test
