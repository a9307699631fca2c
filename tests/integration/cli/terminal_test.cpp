#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "cli_fixture.h"

namespace lockkeeper::test {
namespace {

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

  /// In the foreground of the terminal, as a shell starts it.
  Process startForeground(const std::vector<std::string>& arguments) const {
    std::vector<std::string> line{"setsid", "--ctty"};
    for (const std::string& word : commandLine(arguments)) line.push_back(word);
    return Process(line, onTerminal());
  }

  /// A command that would go on with its work after Ctrl-Z and `fg`, which `lose` comes between.
  void loseWhileStopped(const std::string& ttl, const std::function<void()>& lose) const {
    const std::string script = "touch " + file("up") + "; read line; touch " + file("worked");
    Process process = startForeground({"run", "--ttl", ttl, "k", "--", "sh", "-c", script});
    ASSERT_TRUE(fileAppears("up"));
    type("\x1a");
    ASSERT_TRUE(waitUntil([&] { return stateOf(process.pid()) == "T"; }));
    lose();
    ASSERT_TRUE(waitUntil([&] { return isFree("k"); }));
    type("hello\n");
    process.signal(SIGCONT);
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
  Process process = startForeground({"run", "k", "--", "sh", "-c", "read line; echo \"heard $line\""});
  type("hello\n");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0) << readFile(folder / "errors");
  EXPECT_EQ(readFile(folder / "output"), "heard hello\n");
}

TEST_F(OnATerminal, CtrlCEndsTheCommandAndFreesTheKey) {
  Process process =
      startForeground({"run", "k", "--", "sh", "-c", "touch " + file("up") + "; exec sleep 60"});
  ASSERT_TRUE(fileAppears("up"));
  EXPECT_FALSE(isFree("k"));
  type("\x03");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 128 + SIGINT);
  EXPECT_TRUE(isFree("k"));
}

TEST_F(OnATerminal, CtrlZStopsLockkeeperWithItsCommandAndGoingOnResumesBoth) {
  const std::string script = "touch " + file("up") + "; read line; echo \"heard $line\"";
  Process process = startForeground({"run", "k", "--", "sh", "-c", script});
  ASSERT_TRUE(fileAppears("up"));
  EXPECT_NE(foreground(), process.pid());
  type("\x1a");
  ASSERT_TRUE(waitUntil([&] { return stateOf(process.pid()) == "T"; }));
  EXPECT_EQ(foreground(), process.pid()) << "a shell must find its job as it left it";
  process.signal(SIGCONT);
  type("hello\n");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0) << readFile(folder / "errors");
  EXPECT_EQ(readFile(folder / "output"), "heard hello\n");
}

TEST_F(OnATerminal, TheCommandDoesNotGoOnWhenTheLeaseIsOver) {
  loseWhileStopped("1s", [] {});
}

TEST_F(OnATerminal, TheCommandDoesNotGoOnWhenTheLockWasTakenMeanwhile) {
  loseWhileStopped("1h", [&] { redis.command({"DEL", "k"}); });
}

}  // namespace
}  // namespace lockkeeper::test
