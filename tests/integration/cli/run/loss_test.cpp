#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "cli_fixture.h"
#include "fault_proxy.h"

namespace lockkeeper::test {
namespace {

/// `lockkeeper run` whose lock is taken away while its command runs.
using LossOfTheLock = CommandTest;

TEST_F(LossOfTheLock, EndsTheCommandAndSaysSo) {
  const std::string script = "trap 'touch " + file("told") + "; exit 3' TERM; touch " + file("up") +
                             "; while :; do sleep 0.02; done";
  Process holder = start({"run", "--ttl", "1s", "k", "--", "sh", "-c", script});
  ASSERT_TRUE(fileAppears("up"));
  EXPECT_EQ(lockkeeper({"break", "--yes", "k"}).exitCode, 0);
  EXPECT_EQ(holder.waitFor(std::chrono::seconds{30}), 76);
  EXPECT_TRUE(std::filesystem::exists(folder / "told"));
  EXPECT_NE(readFile(folder / "errors").find("lost"), std::string::npos);
}

TEST_F(LossOfTheLock, KillsWhatDoesNotEndByItself) {
  writeFile(folder / "stubborn",
            "trap '' TERM\necho $$ > " + file("child") + "\nwhile :; do sleep 0.02; done\n");
  for (const std::string leader : {"trap '' TERM", "trap 'exit 3' TERM"}) {
    SCOPED_TRACE(leader);
    std::filesystem::remove(folder / "child");
    writeFile(folder / "leader", leader + "\nsh " + file("stubborn") + " &\nwhile :; do sleep 0.02; done\n");
    Process holder = start({"run", "--ttl", "5s", "--grace", "100ms", "k", "--", "sh", file("leader")});
    ASSERT_TRUE(waitUntil([&] { return !readFile(folder / "child").empty(); }));
    EXPECT_EQ(redis.command({"DEL", "k"}), "1");
    EXPECT_EQ(holder.waitFor(std::chrono::seconds{30}), 76);
    const pid_t child = std::stoi(readFile(folder / "child"));
    EXPECT_TRUE(waitUntil([&] { return ::kill(child, 0) != 0; })) << "a process of the command still runs";
  }
}

TEST_F(LossOfTheLock, EndsProcessOneOfAContainerAsWell) {
  // Nobody but process 1 takes what is left of a process whose parent has ended.
  writeFile(folder / "leader", "trap '' TERM\nsh -c 'exec sleep 60 & exec sleep 60' &\ntouch " + file("up") +
                                   "\nwhile :; do sleep 0.02; done\n");
  if (!hasContainers()) GTEST_SKIP() << "no namespaces here";
  Process container(
      inContainer(commandLine({"run", "--ttl", "1s", "--grace", "100ms", "k", "--", "sh", file("leader")})),
      options());
  ASSERT_TRUE(fileAppears("up"));
  EXPECT_EQ(redis.command({"DEL", "k"}), "1");
  EXPECT_EQ(container.waitFor(std::chrono::seconds{20}), 76);
}

/// While it lives, this process takes what is left of a process whose parent has ended, and reaps none of it.
class NegligentParent {
 public:
  NegligentParent() { EXPECT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }
  NegligentParent(const NegligentParent&) = delete;
  NegligentParent& operator=(const NegligentParent&) = delete;
  ~NegligentParent() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
};

TEST_F(LossOfTheLock, EndsAlsoBelowAParentThatReapsNoOrphans) {
  const NegligentParent parent;
  writeFile(folder / "leader", "trap '' TERM\nsh -c 'sleep 60 & exec sleep 60' &\ntouch " + file("up") +
                                   "\nwhile :; do sleep 0.02; done\n");
  Process holder = start({"run", "--ttl", "1s", "--grace", "100ms", "k", "--", "sh", file("leader")});
  ASSERT_TRUE(fileAppears("up"));
  EXPECT_EQ(redis.command({"DEL", "k"}), "1");
  EXPECT_EQ(holder.waitFor(std::chrono::seconds{20}), 76) << "what has ended counts as alive for ever";
}

TEST_F(LossOfTheLock, EndsTheCommandThoughNobodyReadsWhatIsSaid) {
  ASSERT_EQ(::mkfifo(file("errors").c_str(), 0600), 0);
  const int pipe = ::open(file("errors").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(pipe, 0);
  while (::write(pipe, "x", 1) == 1) {
  }
  const std::string script =
      "trap ': >" + file("told") + "' TERM; touch " + file("up") + "; while :; do sleep 0.02; done";
  Process holder = start({"run", "--ttl", "5s", "--grace", "3s", "k", "--", "sh", "-c",
                          "exec 2>/dev/null; echo $$ > " + file("child") + "; " + script});
  ASSERT_TRUE(fileAppears("up"));
  EXPECT_EQ(redis.command({"DEL", "k"}), "1");
  EXPECT_TRUE(fileAppears("told"));
  const pid_t child = std::stoi(readFile(folder / "child"));
  EXPECT_TRUE(waitUntil([&] { return ::kill(child, 0) != 0; })) << "the command still runs";
  EXPECT_TRUE(holder.running());
  for (char read = 0; ::read(pipe, &read, 1) == 1;) {
  }
  EXPECT_EQ(holder.waitFor(std::chrono::seconds{20}), 76);
  ::close(pipe);
}

TEST_F(LossOfTheLock, BeforeTheCommandIsStartedLeavesItAlone) {
  FaultProxy proxy(redis.port());
  proxy.set({.kind = ProxyFault::Kind::delay, .pause = std::chrono::milliseconds{300}});
  writeFile(folder / "settings", "lockkeeper.store = redis://127.0.0.1:" + std::to_string(proxy.port()) +
                                     "\nlockkeeper.lock.maxHold = 100ms\n");
  const Finished finished =
      lockkeeper({"run", "--config", file("settings"), "--wait", "20s", "k", "--", "touch", file("started")});
  EXPECT_EQ(finished.exitCode, 76);
  EXPECT_NE(finished.errors.find("lost before the command was started"), std::string::npos)
      << finished.errors;
  EXPECT_FALSE(std::filesystem::exists(folder / "started"));
}

TEST_F(LossOfTheLock, IsToldEvenWhenTheCommandHasJustEnded) {
  const std::string script = "redis-cli -p " + std::to_string(redis.port()) + " set k stolen";
  const Finished finished = lockkeeper({"run", "k", "--", "sh", "-c", script});
  EXPECT_EQ(finished.exitCode, 76);
  EXPECT_NE(finished.errors.find("lost"), std::string::npos) << finished.errors;
  EXPECT_EQ(redis.command({"GET", "k"}), "stolen") << "the next holder's lock is not ours to release";
}

TEST_F(LossOfTheLock, ComesWhenTheStoreDies) {
  Process holder =
      start({"run", "--ttl", "2s", "k", "--", "sh", "-c", "touch " + file("up") + "; exec sleep 60"});
  ASSERT_TRUE(fileAppears("up"));
  redis.kill();
  EXPECT_EQ(holder.waitFor(std::chrono::seconds{30}), 76);
}

/// `lockkeeper run` that may signal none of its command's processes that have become another user.
class CommandOfAnotherUser : public CommandTest {
 protected:
  /// `script` starts `sleep` as another user, and writes its process ID to the file "child".
  Process startRun(const std::string& script) {
    std::vector<std::string> line{"setpriv", "--bounding-set", "-kill"};
    for (const std::string& word :
         commandLine({"run", "--ttl", "1s", "--grace", "100ms", "k", "--", "sh", "-c", script})) {
      line.push_back(word);
    }
    ProcessOptions withErrors = options();
    withErrors.standardError = folder / "errors";
    Process holder(line, withErrors);
    EXPECT_TRUE(waitUntil([&] { return readFile(folder / "child").ends_with("\n"); }));
    child_ = std::stoi(readFile(folder / "child"));
    EXPECT_TRUE(
        waitUntil([&] { return readFile("/proc/" + std::to_string(child_) + "/comm") == "sleep\n"; }));
    return holder;
  }
  bool saysThatItCannotSignal() const {
    return waitUntil([&] { return readFile(folder / "errors").find(unreachable) != std::string::npos; });
  }
  void endChild() const { EXPECT_EQ(::kill(child_, SIGKILL), 0) << "it has ended already"; }

  const std::string unreachable =
      "lockkeeper: the command runs as another user and cannot be signalled: it may still be at work\n";

 private:
  void SetUp() override {
    const Finished finished =
        runToEnd({"setpriv", "--bounding-set", "-kill", "setpriv", "--reuid", "65534", "true"});
    if (finished.exitCode != 0) GTEST_SKIP() << "only root can become another user";
  }

  pid_t child_ = 0;
};

TEST_F(CommandOfAnotherUser, IsNamedWhenASignalCannotBePassedOn) {
  Process holder = startRun("echo $$ > " + file("child") + "; exec setpriv --reuid 65534 sleep 60");
  holder.signal(SIGTERM);
  EXPECT_TRUE(saysThatItCannotSignal());
  holder.signal(SIGTERM);
  endChild();
  EXPECT_EQ(holder.waitFor(std::chrono::seconds{20}), 128 + SIGKILL);
  EXPECT_EQ(readFile(folder / "errors"), unreachable) << "said once";
}

TEST_F(CommandOfAnotherUser, IsNotTakenForEndedWhenTheLockIsLost) {
  Process holder = startRun("setpriv --reuid 65534 sleep 60 & echo $! > " + file("child") + "; wait");
  EXPECT_EQ(redis.command({"DEL", "k"}), "1");
  EXPECT_TRUE(saysThatItCannotSignal());
  EXPECT_TRUE(holder.running());
  EXPECT_EQ(readFile(folder / "errors"), unreachable) << "not yet that the command was ended";
  endChild();
  EXPECT_EQ(holder.waitFor(std::chrono::seconds{20}), 76);
  EXPECT_EQ(readFile(folder / "errors"),
            unreachable + "lockkeeper: the lock 'k' was lost: the command was ended\n");
}

}  // namespace
}  // namespace lockkeeper::test
