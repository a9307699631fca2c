#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "cli_fixture.h"

namespace lockkeeper::test {
namespace {

using RunCommand = CommandTest;

TEST_F(RunCommand, ReturnsTheCommandsOwnExitCode) {
  EXPECT_EQ(lockkeeper({"run", "k", "--", "true"}).exitCode, 0);
  EXPECT_EQ(lockkeeper({"run", "k", "--", "sh", "-c", "exit 7"}).exitCode, 7);
  EXPECT_EQ(lockkeeper({"run", "k", "--", "sh", "-c", "kill -9 $$"}).exitCode, 128 + SIGKILL);
}

TEST_F(RunCommand, PassesArgumentsAndStreamsThrough) {
  const Finished finished =
      lockkeeper({"run", "k", "--", "sh", "-c", "echo \"$1\"; echo trouble >&2", "sh", "--x y"});
  EXPECT_EQ(finished.output, "--x y\n");
  EXPECT_EQ(finished.errors, "trouble\n");
}

TEST_F(RunCommand, TellsTheCommandItsKeyAndFence) {
  const std::string script = "echo \"$LOCKKEEPER_KEY $LOCKKEEPER_FENCE\"";
  const auto fence = [&] {
    const Finished finished = lockkeeper({"run", "--namespace", "shop", "a b", "--", "sh", "-c", script});
    EXPECT_EQ(finished.output.substr(0, 4), "a b ") << finished.errors;
    return std::stoull(finished.output.substr(4));
  };
  const auto first = fence();
  EXPECT_GT(fence(), first);
}

TEST_F(RunCommand, DoesNotPassOnTheFenceOfAnotherLock) {
  ProcessOptions inner = options();
  inner.environment["LOCKKEEPER_FENCE"] = "99";
  const auto line = commandLine(
      {"run", "--store", redis.uri() + "?fence=off", "k", "--", "sh", "-c", "echo \"<$LOCKKEEPER_FENCE>\""});
  EXPECT_EQ(runToEnd(line, inner).output, "<>\n");
}

TEST_F(RunCommand, HoldsTheLockWhileTheCommandRunsAndNoLonger) {
  Process holder =
      start({"run", "--ttl", "20s", "k", "--", "sh", "-c", "touch " + file("up") + "; sleep 60"});
  ASSERT_TRUE(fileAppears("up"));
  EXPECT_EQ(lockkeeper({"run", "k", "--", "true"}).exitCode, 75);
  holder.signal(SIGTERM);
  EXPECT_EQ(holder.waitFor(std::chrono::seconds{20}), 128 + SIGTERM);
  EXPECT_TRUE(isFree("k"));
}

TEST_F(RunCommand, DoesNotStartTheCommandWhileTheKeyIsBusy) {
  holdForeign("k");
  const Finished finished = lockkeeper({"run", "k", "--", "touch", file("started")});
  EXPECT_EQ(finished.exitCode, 75);
  EXPECT_EQ(finished.errors.find("lockkeeper: "), 0U) << finished.errors;
  EXPECT_FALSE(std::filesystem::exists(folder / "started"));
}

TEST_F(RunCommand, WaitsForABusyKey) {
  holdForeign("k", 300);
  const Finished finished = lockkeeper({"run", "--wait", "30s", "k", "--", "echo", "mine"});
  EXPECT_EQ(finished.exitCode, 0) << finished.errors;
  EXPECT_EQ(finished.output, "mine\n");
}

TEST_F(RunCommand, OutlivesItsTtl) {
  const std::string script = "sleep 2.5; redis-cli -p " + std::to_string(redis.port()) + " exists k";
  const Finished finished = lockkeeper({"run", "--ttl", "1s", "k", "--", "sh", "-c", script});
  EXPECT_EQ(finished.exitCode, 0) << finished.errors;
  EXPECT_EQ(finished.output, "1\n");
}

TEST_F(RunCommand, SaysWhenTheCommandCannotBeStartedAndFreesTheKey) {
  const Finished missing = lockkeeper({"run", "k", "--", "no-such-command-anywhere"});
  EXPECT_EQ(missing.exitCode, 127);
  EXPECT_NE(missing.errors.find("no-such-command-anywhere"), std::string::npos);
  writeFile(folder / "plain", "text");
  EXPECT_EQ(lockkeeper({"run", "k", "--", file("plain")}).exitCode, 126);
  EXPECT_TRUE(isFree("k"));
}

TEST_F(RunCommand, PassesSignalsOnToTheCommand) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGALRM, SIGRTMIN}) {
    SCOPED_TRACE(signal);
    const std::string number = std::to_string(signal);
    const std::string script =
        "trap 'exit 5' " + number + "; touch " + file("up" + number) + "; while :; do sleep 0.02; done";
    Process holder = start({"run", "k", "--", "bash", "-c", script});
    ASSERT_TRUE(fileAppears("up" + number));
    holder.signal(signal);
    EXPECT_EQ(holder.waitFor(std::chrono::seconds{20}), 5) << readFile(folder / "errors");
    EXPECT_TRUE(isFree("k"));
  }
}

TEST_F(RunCommand, StopsTheCommandAndKeepsItsLockWhenToldToStop) {
  const std::string script = "echo $$ > " + file("child") + "; touch " + file("up") +
                             "; exec sleep 60";  // no vfork(), in which a shell does not stop
  std::vector<std::string> line{"setsid"};       // whoever runs the tests may have a terminal
  for (const std::string& word : commandLine({"run", "k", "--", "sh", "-c", script})) line.push_back(word);
  Process holder(line, options());
  ASSERT_TRUE(fileAppears("up"));
  const pid_t command = std::stoi(readFile(folder / "child"));
  holder.signal(SIGTSTP);
  EXPECT_TRUE(waitUntil([&] { return stateOf(command) == "T"; }));
  EXPECT_NE(stateOf(holder.pid()), "T") << "somebody must renew the lock";
  holder.signal(SIGCONT);
  EXPECT_TRUE(waitUntil([&] { return stateOf(command) == "S"; }));
  holder.signal(SIGTERM);
  EXPECT_EQ(holder.waitFor(std::chrono::seconds{20}), 128 + SIGTERM);
}

TEST_F(RunCommand, IgnoresWhatItsCallerIgnores) {
  holdForeign("k");
  std::vector<std::string> line{"nohup"};
  for (const std::string& word :
       commandLine({"run", "--wait", "1h", "k", "--", "sh", "-c", "kill -HUP $$; exit 6"}))
    line.push_back(word);
  Process waiting(line, options());
  ASSERT_TRUE(isConnected());
  waiting.signal(SIGHUP);
  EXPECT_FALSE(waiting.waitFor(std::chrono::milliseconds{300})) << "the wait has ended";
  redis.command({"DEL", "k"});
  EXPECT_EQ(waiting.waitFor(std::chrono::seconds{20}), 6);
}

TEST_F(RunCommand, SeesTheCommandEndEvenWhenItsCallerIgnoresChildren) {
  std::string line = "trap '' CHLD; exec";
  for (const std::string& word : commandLine({"run", "k", "--", "true"})) line += " " + word;
  Process run({"bash", "-c", line}, options());
  EXPECT_EQ(run.waitFor(std::chrono::seconds{20}), 0);
  EXPECT_TRUE(isFree("k"));
}

TEST_F(RunCommand, LeavesTheQueueWhenInterrupted) {
  holdForeign("k");
  Process waiting = start({"run", "--wait", "1h", "k", "--", "touch", file("started")});
  ASSERT_TRUE(isConnected());
  waiting.signal(SIGWINCH);
  waiting.signal(SIGCONT);
  EXPECT_FALSE(waiting.waitFor(std::chrono::milliseconds{300})) << "by default, these end nobody";
  waiting.signal(SIGUSR1);
  EXPECT_EQ(waiting.waitFor(std::chrono::seconds{20}), 128 + SIGUSR1);
  EXPECT_FALSE(std::filesystem::exists(folder / "started"));
  EXPECT_EQ(redis.command({"GET", "k"}), "foreign");
}

TEST_F(RunCommand, TheCommandIsToldToEndWhenLockkeeperIsKilled) {
  const std::string script =
      "trap 'touch " + file("told") + "; exit' TERM; touch " + file("up") + "; while :; do sleep 0.02; done";
  Process holder = start({"run", "k", "--", "sh", "-c", script});
  ASSERT_TRUE(fileAppears("up"));
  holder.signal(SIGKILL);
  EXPECT_TRUE(fileAppears("told"));
}

TEST_F(RunCommand, TheCommandInheritsNeitherSocketsNorBlockedSignals) {
  const Finished files = lockkeeper({"run", "k", "--", "ls", "-l", "/proc/self/fd"});
  EXPECT_NE(files.output.find("/dev/null"), std::string::npos) << files.errors;
  EXPECT_EQ(files.output.find("socket:"), std::string::npos) << files.output;
  // Without a shell, which would unblock them itself.
  const Finished signals = lockkeeper({"run", "k", "--", "grep", "SigBlk", "/proc/self/status"});
  EXPECT_EQ(signals.output, "SigBlk:\t0000000000000000\n") << signals.errors;
}

TEST_F(RunCommand, KeepsThePasswordOutOfTheProcessList) {
  const std::string store = "redis://:s3cr3t@127.0.0.1:" + std::to_string(redis.port());
  redis.command({"CONFIG", "SET", "requirepass", "s3cr3t"});
  for (const auto& option :
       {std::vector<std::string>{"--store", store}, {"--store=" + store}, {"-s" + store}}) {
    std::vector<std::string> arguments{"run"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    for (const char* word : {"k", "--", "sh", "-c", "tr '\\0' ' ' < /proc/$PPID/cmdline"})
      arguments.push_back(word);
    const Finished finished = lockkeeper(arguments);
    EXPECT_EQ(finished.exitCode, 0) << finished.errors;
    EXPECT_NE(finished.output.find(" run "), std::string::npos) << finished.output;
    EXPECT_EQ(finished.output.find("s3cr3t"), std::string::npos) << finished.output;
  }
}

TEST_F(RunCommand, ReadsTheConfigurationFileOfAnApplication) {
  redis.command({"CONFIG", "SET", "requirepass", "s3cr3t"});
  writeFile(folder / "shop.properties",
            "lockkeeper.store = redis://:${REDIS_PASSWORD}@127.0.0.1:" + std::to_string(redis.port()) +
                "/2\nlockkeeper.namespace = shop\nlockkeeper.lock.ttl = 77s\n");
  ProcessOptions withPassword;
  withPassword.environment["REDIS_PASSWORD"] = "s3cr3t";
  const std::string script =
      "redis-cli -p " + std::to_string(redis.port()) + " -a s3cr3t -n 2 ttl shop:k 2>/dev/null";
  const auto line = commandLine({"run", "--config", file("shop.properties"), "k", "--", "sh", "-c", script});
  const Finished finished = runToEnd(line, withPassword);
  EXPECT_EQ(finished.exitCode, 0) << finished.errors;
  EXPECT_TRUE(finished.output == "77\n" || finished.output == "76\n") << finished.output << finished.errors;
}

TEST_F(RunCommand, TakesItsLockInTheGivenStoreAloneBesideAMigration) {
  const std::string server = "redis://127.0.0.1:" + std::to_string(redis.port());
  writeFile(folder / "shop.properties", "lockkeeper.store = " + server + "/2\nlockkeeper.migration.from = " +
                                            server + "/1\nlockkeeper.migration.phase = both\n");
  const std::string look =
      "for n in 1 2 3; do redis-cli -p " + std::to_string(redis.port()) + " -n $n exists k; done";
  const Finished finished = lockkeeper(
      {"run", "--config", file("shop.properties"), "--store", server + "/3", "k", "--", "sh", "-c", look});
  EXPECT_EQ(finished.output, "0\n0\n1\n") << finished.errors;
  const Finished status =
      lockkeeper({"migrate", "status", "--config", file("shop.properties"), "--store", server + "/3"});
  EXPECT_EQ(status.exitCode, 0) << status.errors;
}

TEST_F(RunCommand, FollowsReferencesOfTheConfigurationFile) {
  writeFile(folder / "shop.properties",
            "redis.port = " + std::to_string(redis.port()) +
                "\nlockkeeper.store = redis://${system.env.REDIS_HOST}:${redis.port}\n");
  ProcessOptions withHost;
  withHost.environment["REDIS_HOST"] = "127.0.0.1";
  const auto line = commandLine({"run", "--config", file("shop.properties"), "k", "--", "true"});
  const Finished finished = runToEnd(line, withHost);
  EXPECT_EQ(finished.exitCode, 0) << finished.errors;
}

TEST_F(RunCommand, EightProcessesNeverLoseACount) {
  constexpr int processes = 8;
  constexpr int rounds = 10;
  writeFile(folder / "counter", "0\n");
  const std::string increment = "read n < " + file("counter") + "; echo $((n + 1)) > " + file("counter");
  const std::string loop = "i=0; while [ $i -lt " + std::to_string(rounds) + " ]; do " + LOCKKEEPER_COMMAND +
                           " run --wait 100s counter -- sh -c '" + increment +
                           "' || exit; i=$((i + 1)); done";
  std::vector<std::unique_ptr<Process>> running;
  for (int i = 0; i < processes; ++i) {
    running.push_back(std::make_unique<Process>(std::vector<std::string>{"sh", "-c", loop}, options()));
  }
  for (const auto& process : running) EXPECT_EQ(process->waitFor(std::chrono::seconds{110}), 0);
  EXPECT_EQ(readFile(folder / "counter"), std::to_string(processes * rounds) + "\n");
}

}  // namespace
}  // namespace lockkeeper::test
