#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "cli_fixture.h"

namespace lockkeeper::test {
namespace {

// Runs its arguments as a job. When that stops, it waits until it is told what to do.
constexpr const char* shell = R"sh(set -m
"$@" 2>$FOLDER/errors
code=$?
while [ -n "$(jobs -ps)" ]; do
  jobs -ps >$FOLDER/stopped
  read how <$FOLDER/told
  : >$FOLDER/stopped
  $how >/dev/null
  code=$?
  while [ -n "$(jobs -pr)" ]; do read -t 0.02 <>$FOLDER/told; done
done
exit $code
)sh";

/// The command with a terminal on its standard input, on which the test types.
class OnATerminal : public CommandTest {
 protected:
  OnATerminal() : keyboard_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (keyboard_ < 0 || ::grantpt(keyboard_) != 0 || ::unlockpt(keyboard_) != 0) {
      throw std::runtime_error("this machine has no pseudo terminals");
    }
    // Somebody must have it open, or what is typed before the command opens it is lost.
    terminal_ = ::open(::ptsname(keyboard_), O_RDWR | O_NOCTTY | O_CLOEXEC);
  }
  ~OnATerminal() override {
    ::close(terminal_);
    ::close(keyboard_);
  }

  void type(const std::string& text) const {
    ASSERT_EQ(::write(keyboard_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  /// The process group that the terminal listens to.
  pid_t foreground() const { return ::tcgetpgrp(keyboard_); }

  /// In the foreground of the terminal, with no shell above it.
  Process startForeground(const std::vector<std::string>& command) const {
    std::vector<std::string> line{"setsid", "--ctty"};
    line.insert(line.end(), command.begin(), command.end());
    return Process(line, onTerminal());
  }

  /// As a job of a shell. When the job stops, the shell waits for tell().
  Process startJob(const std::vector<std::string>& command) const {
    EXPECT_EQ(::mkfifo(file("told").c_str(), 0600), 0);
    writeFile(folder / "shell", shell);
    std::vector<std::string> line{"setsid", "--ctty", "bash", file("shell")};
    line.insert(line.end(), command.begin(), command.end());
    ProcessOptions withTerminal = onTerminal();
    withTerminal.standardError = withTerminal.standardInput;  // where bash looks for it
    withTerminal.environment["FOLDER"] = folder.path();
    return Process(line, withTerminal);
  }
  bool jobStops() const {
    return waitUntil([&] { return readFile(folder / "stopped").ends_with("\n"); });
  }
  /// "fg" or "bg".
  void tell(const std::string& how) const { writeFile(folder / "told", how + "\n"); }

  /// A command that would go on with its work after Ctrl-Z and `fg`, which `lose` comes between.
  void loseWhileStopped(const std::string& ttl, const std::function<void()>& lose) const {
    const std::string script = "touch " + file("up") + "; read line; touch " + file("worked");
    Process process = startJob(commandLine({"run", "--ttl", ttl, "k", "--", "sh", "-c", script}));
    ASSERT_TRUE(fileAppears("up"));
    type("\x1a");
    ASSERT_TRUE(jobStops());
    EXPECT_EQ(stateOf(std::stoi(readFile(folder / "stopped"))), "T");
    lose();
    ASSERT_TRUE(waitUntil([&] { return isFree("k"); }));
    type("hello\n");
    tell("fg");
    EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 76) << readFile(folder / "errors");
    EXPECT_FALSE(std::filesystem::exists(folder / "worked"));
  }

  ProcessOptions onTerminal() const {
    ProcessOptions result = options();
    result.standardInput = ::ptsname(keyboard_);
    result.standardOutput = folder / "output";
    result.standardError = folder / "errors";
    return result;
  }

 private:
  int keyboard_;
  int terminal_ = -1;
};

TEST_F(OnATerminal, BreakAsksAndTakesNoForAnAnswer) {
  holdForeign("k");
  type("n\n");
  Process process(commandLine({"break", "k"}), onTerminal());
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 75);
  EXPECT_NE(readFile(folder / "errors").find("[y/N]"), std::string::npos);
  EXPECT_FALSE(isFree("k"));
}

TEST_F(OnATerminal, CtrlCEndsProcessOneOfAContainerAsWell) {
  if (!hasContainers()) GTEST_SKIP() << "no namespaces here";
  holdForeign("k");
  Process process = startForeground(inContainer(commandLine({"break", "k"})));
  ASSERT_TRUE(waitUntil([&] { return readFile(folder / "errors").find("[y/N]") != std::string::npos; }));
  type("\x03");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 130);
  EXPECT_FALSE(isFree("k"));
}

TEST_F(OnATerminal, BreakFreesTheKeyAfterAYes) {
  holdForeign("k");
  type("y\n");
  Process process(commandLine({"break", "k"}), onTerminal());
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0);
  EXPECT_TRUE(isFree("k"));
}

TEST_F(OnATerminal, BreakShowsAHolderWhoseNameControlsNothing) {
  const std::string owner = "\x1b[31mred";
  const auto hold = [&](char token) {
    redis.command({"SET", "k", std::string(32, token) + "@" + owner, "PX", "60000"});
  };
  const auto errors = [&] { return readFile(folder / "errors"); };
  hold('a');
  Process process(commandLine({"break", "k"}), onTerminal());
  ASSERT_TRUE(waitUntil([&] { return errors().find("[y/N]") != std::string::npos; }));
  hold('b');
  type("y\n");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 75);
  EXPECT_EQ(errors().find('\x1b'), std::string::npos) << errors();
  EXPECT_NE(errors().find("k is held by '\\x1b[31mred'"), std::string::npos) << errors();
  EXPECT_NE(errors().find("k is now held by '\\x1b[31mred'"), std::string::npos) << errors();
}

TEST_F(OnATerminal, BreakLeavesAHolderThatItHasNotShown) {
  holdForeign("k");
  Process process(commandLine({"break", "k"}), onTerminal());
  ASSERT_TRUE(waitUntil([&] { return readFile(folder / "errors").find("[y/N]") != std::string::npos; }));
  redis.command({"DEL", "k"});
  redis.command({"SET", "k", std::string(32, 'a') + "@next:1", "PX", "60000"});
  type("y\n");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 75);
  EXPECT_NE(readFile(folder / "errors").find("now held by next:1"), std::string::npos);
  EXPECT_FALSE(isFree("k"));
}

TEST_F(OnATerminal, TheCommandReadsFromIt) {
  Process process =
      startForeground(commandLine({"run", "k", "--", "sh", "-c", "read line; echo \"heard $line\""}));
  type("hello\n");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0) << readFile(folder / "errors");
  EXPECT_EQ(readFile(folder / "output"), "heard hello\n");
}

TEST_F(OnATerminal, CtrlCEndsTheCommandAndFreesTheKey) {
  Process process =
      startForeground(commandLine({"run", "k", "--", "sh", "-c", "touch " + file("up") + "; exec sleep 60"}));
  ASSERT_TRUE(fileAppears("up"));
  EXPECT_FALSE(isFree("k"));
  type("\x03");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 128 + SIGINT);
  EXPECT_TRUE(isFree("k"));
}

TEST_F(OnATerminal, CtrlZStopsLockkeeperWithItsCommandAndGoingOnResumesBoth) {
  const std::string script = "touch " + file("up") + "; read line; echo \"heard $line\"";
  Process process = startJob(commandLine({"run", "k", "--", "sh", "-c", script}));
  ASSERT_TRUE(fileAppears("up"));
  type("\x1a");
  ASSERT_TRUE(jobStops());
  EXPECT_EQ(stateOf(std::stoi(readFile(folder / "stopped"))), "T");
  tell("fg");
  type("hello\n");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0) << readFile(folder / "errors");
  EXPECT_EQ(readFile(folder / "output"), "heard hello\n");
}

TEST_F(OnATerminal, CtrlZDoesNotStopWhatNoShellCanContinue) {
  const std::string script =
      "echo $$ >" + file("child") + "; touch " + file("up") + "; " + "read line; echo \"heard $line\"";
  Process process = startForeground(commandLine({"run", "k", "--", "sh", "-c", script}));
  ASSERT_TRUE(fileAppears("up"));
  const pid_t command = std::stoi(readFile(folder / "child"));
  EXPECT_TRUE(waitUntil([&] { return foreground() == command; }));
  type("\x1a");
  type("hello\n");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0) << readFile(folder / "errors");
  EXPECT_EQ(readFile(folder / "output"), "heard hello\n");
}

TEST_F(OnATerminal, AJobThatGoesOnInTheBackgroundLeavesTheTerminalToTheShell) {
  // No vfork(), in which a shell does not stop.
  const std::string script = ": >" + file("up") + "; until [ -e " + file("read") + " ]; do : >" +
                             file("alive") + "; done; read line; echo \"heard $line\"";
  Process process = startJob(commandLine({"run", "k", "--", "sh", "-c", script}));
  ASSERT_TRUE(fileAppears("up"));
  type("\x1a");
  ASSERT_TRUE(jobStops());
  std::filesystem::remove(folder / "alive");
  tell("bg");
  ASSERT_TRUE(fileAppears("alive"));
  EXPECT_EQ(foreground(), process.pid());
  writeFile(folder / "read", "");
  ASSERT_TRUE(jobStops()) << "it asks for the terminal";
  EXPECT_EQ(foreground(), process.pid());
  tell("fg");
  type("hello\n");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0) << readFile(folder / "errors");
  EXPECT_EQ(readFile(folder / "output"), "heard hello\n");
}

TEST_F(OnATerminal, TheCommandMayAskThereThoughItsInputIsAPipe) {
  const std::string ask = " run k -- sh -c 'read line </dev/tty; cat; echo \"heard $line\"'";
  Process process = startJob({"sh", "-c", std::string("echo dump | ") + LOCKKEEPER_COMMAND + ask});
  type("hello\n");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0) << readFile(folder / "errors");
  EXPECT_EQ(readFile(folder / "output"), "dump\nheard hello\n");
}

TEST_F(OnATerminal, ARunInsideARunReadsFromItToo) {
  const std::string inner =
      std::string(LOCKKEEPER_COMMAND) + " run other -- sh -c 'read line; echo \"heard $line\"'";
  Process process = startJob(commandLine({"run", "k", "--", "sh", "-c", inner}));
  type("hello\n");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0) << readFile(folder / "errors");
  EXPECT_EQ(readFile(folder / "output"), "heard hello\n");
}

TEST_F(OnATerminal, WhoReadsTheCommandsOutputMayAskThere) {
  const std::string report = std::string(LOCKKEEPER_COMMAND) + " run k -- sh -c 'echo report; until [ -e " +
                             file("end") + " ]; do sleep 0.02; done'";
  const std::string pager =
      "{ read first; read line </dev/tty; touch " + file("end") + "; echo \"$first, heard $line\"; }";
  Process process = startJob({"sh", "-c", report + " | " + pager});
  type("hello\n");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0) << readFile(folder / "errors");
  EXPECT_EQ(readFile(folder / "output"), "report, heard hello\n");
}

TEST_F(OnATerminal, TheCommandDoesNotGoOnWhenTheLeaseIsOver) {
  loseWhileStopped("4s", [] {});
}

TEST_F(OnATerminal, TheCommandDoesNotGoOnWhenTheLockWasTakenMeanwhile) {
  loseWhileStopped("1h", [&] { redis.command({"DEL", "k"}); });
}

}  // namespace
}  // namespace lockkeeper::test
