#include <signal.h>

#include <string>

#include "../cli_fixture.h"

namespace lockkeeper::test {
namespace {

/// `lockkeeper run` inside the command of another one.
class NestedRun : public CommandTest {
 protected:
  static constexpr const char* command = LOCKKEEPER_COMMAND;

  Finished nested(const std::vector<std::string>& outer, const std::string& script) const {
    std::vector<std::string> arguments{"run"};
    arguments.insert(arguments.end(), outer.begin(), outer.end());
    for (const std::string& each : {std::string("--"), std::string("sh"), std::string("-c"), script}) {
      arguments.push_back(each);
    }
    return lockkeeper(arguments);
  }
  static std::string run(const std::string& arguments) { return std::string(command) + " run " + arguments; }
  std::string exists(const std::string& key) const {
    return "redis-cli -p " + std::to_string(redis.port()) + " exists " + key;
  }
};

TEST_F(NestedRun, LocksTheKeyOfTheOuterRunAgainAndLeavesItTheLock) {
  const std::string inner = run("k -- sh -c '" + run("k -- printenv LOCKKEEPER_FENCE") + "'");
  const Finished finished =
      nested({"k"}, "echo $LOCKKEEPER_FENCE; " + inner + "; " + inner + "; " + exists("k"));
  EXPECT_EQ(finished.exitCode, 0) << finished.errors;
  const std::string fence = finished.output.substr(0, finished.output.find('\n') + 1);
  EXPECT_EQ(finished.output, fence + fence + fence + "1\n") << finished.errors;
  EXPECT_TRUE(isFree("k"));
}

TEST_F(NestedRun, LocksEachOfSeveralKeysAgain) {
  const Finished finished = nested(
      {"a"}, run("b -- sh -c '" + run("a -- echo a") + "; " + run("b -- echo b") + "'; " + exists("a b")));
  EXPECT_EQ(finished.output, "a\nb\n1\n") << finished.errors;
  EXPECT_EQ(finished.exitCode, 0);
}

TEST_F(NestedRun, HasThePermitOfTheOuterRunOnce) {
  const Finished finished =
      nested({"--permits", "2", "k"}, run("--permits 2 k -- " + std::string(command) + " show --json k"));
  EXPECT_EQ(finished.exitCode, 0) << finished.errors;
  const std::string held = "\"permits\":1";
  const auto first = finished.output.find(held);
  EXPECT_NE(first, std::string::npos) << finished.output;
  EXPECT_EQ(finished.output.find(held, first + 1), std::string::npos) << finished.output;
  EXPECT_EQ(nested({"--permits", "2", "k"}, run("k -- true")).exitCode, 75) << "that is more than one permit";
}

TEST_F(NestedRun, OfAnotherKeyOrStoreOrWithoutTheDescriptorWaitsLikeAnybody) {
  const RedisServer another;
  const std::string elsewhere =
      run("--store " + another.uri() + " k -- redis-cli -p " + std::to_string(another.port()) + " exists k");
  const Finished finished = nested({"k"}, run("--namespace n k -- echo other") + "; " + elsewhere);
  EXPECT_EQ(finished.output, "other\n1\n") << finished.errors;
  EXPECT_EQ(
      nested({"k"}, "bash -c \"eval 'exec '$LOCKKEEPER_OWNER_FD'<&-'; " + run("k -- true") + "\"").exitCode,
      75);
  EXPECT_EQ(nested({"k"}, "env -u LOCKKEEPER_OWNER_FD " + run("k -- true")).exitCode, 75);
}

TEST_F(NestedRun, IsEndedWhenTheLockOfTheOuterRunIsLost) {
  // Only the outer one knows of it: the store still has its lease of 30 s. The shell between them outlives
  // the SIGTERM.
  writeFile(folder / "settings", "lockkeeper.store = " + redis.uri() + "\nlockkeeper.lock.maxHold = 500ms\n");
  writeFile(folder / "inner", "trap : TERM\n" + run("k -- sleep 60") + "\necho $? > " + file("code.new") +
                                  "\nmv " + file("code.new") + " " + file("code") + "\n");
  Process outer = start({"run", "--config", file("settings"), "k", "--", "sh", file("inner")});
  EXPECT_EQ(outer.waitFor(std::chrono::seconds{30}), 76);
  ASSERT_TRUE(fileAppears("code"));
  EXPECT_EQ(readFile(folder / "code"), "76\n") << readFile(folder / "errors");
}

TEST_F(NestedRun, IsEndedWhenTheOuterRunDies) {
  // In a session of its own, which the death of the outer run does not end.
  const std::string work = "touch " + file("up") + "; exec sleep 60";
  writeFile(folder / "inner", run("k -- sh -c '" + work + "'") + "\necho $? > " + file("code.new") + "\nmv " +
                                  file("code.new") + " " + file("code") + "\n");
  Process outer = start({"run", "k", "--", "setsid", "--wait", "sh", file("inner")});
  ASSERT_TRUE(fileAppears("up"));
  outer.signal(SIGKILL);
  ASSERT_TRUE(fileAppears("code")) << "the lease of 30 s runs on, but nobody holds it";
  EXPECT_EQ(readFile(folder / "code"), "76\n") << readFile(folder / "errors");
}

TEST_F(NestedRun, IsEndedWhenTheOuterRunStandsStillForItsLease) {
  const std::string work = "touch " + file("up") + "; exec sleep 60";
  writeFile(folder / "inner", run("k -- sh -c '" + work + "'") + "\necho $? > " + file("code.new") + "\nmv " +
                                  file("code.new") + " " + file("code") + "\n");
  Process outer = start({"run", "--ttl", "1s", "k", "--", "sh", file("inner")});
  ASSERT_TRUE(fileAppears("up"));
  outer.pause();
  EXPECT_TRUE(fileAppears("code"));
  EXPECT_EQ(readFile(folder / "code"), "76\n") << readFile(folder / "errors");
  outer.resume();
}

TEST_F(NestedRun, CanBeAProgramThatLocksItself) {
  holdForeign("k");
  EXPECT_EQ(runToEnd({LOCKKEEPER_OWNER_WORKER, redis.uri(), "k"}).output, "busy\n");
  redis.command({"DEL", "k"});
  Process outer = start({"run", "--ttl", "1s", "k", "--", LOCKKEEPER_OWNER_WORKER, redis.uri(), "k"});
  ASSERT_TRUE(waitUntil([&] { return readFile(folder / "output").ends_with("\n"); }));
  EXPECT_NE(readFile(folder / "output"), "busy\n");
  EXPECT_EQ(lockkeeper({"break", "--yes", "k"}).exitCode, 0);
  EXPECT_EQ(outer.waitFor(std::chrono::seconds{30}), 76);
  EXPECT_TRUE(readFile(folder / "output").ends_with("\nlost\n")) << readFile(folder / "output");
}

TEST_F(NestedRun, TheTokenOfTheClaimIsNowhere) {
  const std::string pid = "/proc/self/";
  const std::string script = "redis-cli -p " + std::to_string(redis.port()) +
                             " get k | cut -c1-32; echo --; cat " + pid +
                             "environ /proc/$PPID/cmdline /proc/$PPID/environ " + pid +
                             "cmdline; dd bs=4096 count=1 status=none < /proc/self/fd/$LOCKKEEPER_OWNER_FD";
  const Finished finished = nested({"k"}, script);
  const auto marker = finished.output.find("\n--\n");
  ASSERT_EQ(marker, 32U) << finished.output << finished.errors;
  const std::string token = finished.output.substr(0, marker);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos) << "not the token: " << token;
  EXPECT_EQ(finished.output.find(token, marker), std::string::npos);
  EXPECT_NE(finished.output.find("lockkeeper owner 1", marker), std::string::npos) << "the pipe was not read";
}

}  // namespace
}  // namespace lockkeeper::test
