#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cli_fixture.h"

namespace lockkeeper::test {
namespace {

/// What a shell offers for the last word of `line`: its words, one a line.
std::string offered(const std::vector<std::string>& shell) {
  const Finished finished = runToEnd(shell);
  EXPECT_EQ(finished.exitCode, 0) << finished.errors;
  EXPECT_EQ(finished.errors, "");
  return finished.output;
}

/// With the words that bash itself makes of the line.
std::string byBash(const std::string& line, const std::string& words) {
  return offered({"bash", "-c",
                  "source <(" LOCKKEEPER_COMMAND " completion bash); COMP_LINE='" + line +
                      "'; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(" + words +
                      "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _lockkeeper; echo \"${COMPREPLY[*]}\""});
}
std::string byBash(const std::string& arguments) {
  const std::string line = LOCKKEEPER_COMMAND " " + arguments;
  return byBash(line, line);
}
std::string byFish(const std::string& arguments) {
  return offered({"fish", "--no-config", "-c",
                  "set -x PATH (dirname " LOCKKEEPER_COMMAND ") $PATH; lockkeeper completion fish | source; "
                  "complete -C 'lockkeeper " +
                      arguments + "'"});
}
/// zsh completes only what somebody types: here it is told what it would have been told then.
std::string byZsh(const std::string& arguments) {
  return offered({"zsh", "-f", "-c",
                  "compdef() { : }; compadd() { shift; print -r -- \"$@\" }; _files() { print files }; "
                  "_normal() { print -r -- \"$CURRENT: $words\" }; source <(" LOCKKEEPER_COMMAND
                  " completion zsh); words=(" LOCKKEEPER_COMMAND " " +
                      arguments + "); CURRENT=$#words; _lockkeeper"});
}

TEST(Completion, OffersCommandsOptionsAndWhatComesAfterTheDashes) {
  EXPECT_EQ(byBash("r"), "run\n");
  EXPECT_EQ(byBash("run --tt"), "--ttl\n");
  EXPECT_EQ(byBash("break --y"), "--yes\n");
  EXPECT_EQ(byBash("show --yes"), "\n");
  EXPECT_EQ(byBash("watch --sort t"), "turns\n");
  EXPECT_EQ(byBash("watch --sort w"), "waiting\n");
  EXPECT_EQ(byBash("migrate a"), "audit advance\n");
  EXPECT_EQ(byBash("run --store redi"),
            "redis:// rediss:// redis+unix:/// redis+sentinel:// redis+cluster:// redis+legacy://\n");
  EXPECT_EQ(byBash("run --store=my"), "mysql+getlock:// mysql+version://\n") << "what comes after the =";
  EXPECT_NE(byBash("run k -- bas").find("bash"), std::string::npos);
  EXPECT_NE(byBash("run --config /et").find("/etc"), std::string::npos);
}

TEST(Completion, BashBreaksWordsAtColons) {
  EXPECT_EQ(byBash(LOCKKEEPER_COMMAND " run --store redis:", LOCKKEEPER_COMMAND " run --store redis :"),
            "//\n");
}

TEST(Completion, IsThereForFishAndZsh) {
  EXPECT_EQ(byFish("run --tt"), "--ttl\thow long the key stays locked if this machine dies\n");
  EXPECT_EQ(byFish("run --store redl"), "redlock://\n");
  EXPECT_NE(byFish("run k -- bas").find("bash"), std::string::npos);
  EXPECT_EQ(byZsh("run --tt"), "--ttl\n");
  EXPECT_EQ(byZsh("run --store redl"), " -- redlock://\n");
  EXPECT_EQ(byZsh("run k -- sh -"), "2: sh -\n");
  EXPECT_EQ(byZsh("run --config ''"), "files\n");
}

/// A shell on a terminal of its own, in a folder of its own.
class CompletionOnATerminal : public ::testing::Test {
 protected:
  CompletionOnATerminal() : terminal_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (terminal_ < 0 || ::grantpt(terminal_) != 0 || ::unlockpt(terminal_) != 0) {
      throw std::runtime_error("this machine has no pseudo terminals");
    }
    slave_ = ::open(::ptsname(terminal_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    reader_ = std::thread([this] {
      char bytes[4096];
      for (ssize_t count = 0; (count = ::read(terminal_, bytes, sizeof bytes)) > 0;) {
        written_.append(bytes, static_cast<std::size_t>(count));
      }
    });
  }
  ~CompletionOnATerminal() override {
    ::close(slave_);
    reader_.join();  // nobody has the terminal open any more
    ::close(terminal_);
    if (HasFailure()) std::cerr << written_ << std::endl;
  }

  void type(const std::string& text) const {
    ASSERT_EQ(::write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  bool appears(const std::string& name) const {
    return waitUntil([&] { return std::filesystem::exists(folder / name); }, std::chrono::seconds{30});
  }

  void completesAFileThatIsNoCommand(const std::vector<std::string>& shell, const std::string& setUp) const {
    writeFile(folder / "x$(touch pwned) y;z", "lockkeeper.store = memory:\n");
    std::vector<std::string> line{"setsid", "--ctty", "env", "-C", folder.path()};
    line.insert(line.end(), shell.begin(), shell.end());
    const std::filesystem::path command = LOCKKEEPER_COMMAND;
    const std::string search = command.parent_path().string() + ":" + std::getenv("PATH");
    ProcessOptions options{
        .environment = {
            {"PATH", search}, {"HOME", folder.path()}, {"XDG_CONFIG_HOME", folder.path()}, {"TERM", "dumb"}}};
    options.standardInput = options.standardOutput = options.standardError = ::ptsname(terminal_);
    Process process(line, options);
    type(setUp + "; touch ready\r");
    ASSERT_TRUE(appears("ready"));
    type("lockkeeper run --config x\t k -- touch ran\r");
    EXPECT_TRUE(appears("ran"));
    EXPECT_FALSE(std::filesystem::exists(folder / "pwned"));
    process.signal(SIGKILL);
    process.waitFor(std::chrono::seconds{20});
  }

  const TempFolder folder;

 private:
  int terminal_;
  int slave_ = -1;
  std::string written_;
  std::thread reader_;
};

TEST_F(CompletionOnATerminal, BashQuotesTheNamesOfFiles) {
  completesAFileThatIsNoCommand({"bash", "--norc", "-i"}, "source <(lockkeeper completion bash)");
}

TEST_F(CompletionOnATerminal, ZshQuotesTheNamesOfFiles) {
  completesAFileThatIsNoCommand({"zsh", "-f", "-i"},
                                "autoload -U compinit; compinit -u -D; source <(lockkeeper completion zsh)");
}

TEST_F(CompletionOnATerminal, FishQuotesTheNamesOfFiles) {
  completesAFileThatIsNoCommand({"fish", "--no-config", "-i"}, "lockkeeper completion fish | source");
}

TEST(Help, EveryCommandExplainsItselfWithExamplesOrExitCodes) {
  const Finished overview = runToEnd({LOCKKEEPER_COMMAND, "--help"});
  EXPECT_EQ(overview.exitCode, 0);
  for (const std::string command :
       {"run", "show", "list", "watch", "serve", "break", "limit", "migrate", "completion"}) {
    EXPECT_NE(overview.output.find("\n  " + command + " "), std::string::npos);
    const Finished help = runToEnd({LOCKKEEPER_COMMAND, command, "--help"});
    EXPECT_EQ(help.exitCode, 0);
    EXPECT_EQ(help.output.find("usage: lockkeeper " + command), 0U) << help.output;
    EXPECT_NE(help.output.find("Exit: "), std::string::npos) << help.output;
  }
  EXPECT_EQ(runToEnd({LOCKKEEPER_COMMAND, "--version"}).output.find("lockkeeper 0."), 0U);
}

}  // namespace
}  // namespace lockkeeper::test
