#include <string>

#include "cli_fixture.h"

namespace lockkeeper::test {
namespace {

/// What bash offers after `line`, whose last word is being typed.
std::string completions(const std::string& line) {
  const std::string script =
      "source <(" LOCKKEEPER_COMMAND " completion bash); COMP_WORDS=(" + line +
      "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _lockkeeper; echo \"${COMPREPLY[*]}\"";
  const Finished finished = runToEnd({"bash", "-c", script});
  EXPECT_EQ(finished.exitCode, 0) << finished.errors;
  EXPECT_EQ(finished.errors, "");
  return finished.output;
}

TEST(Completion, OffersCommandsOptionsAndWhatComesAfterTheDashes) {
  EXPECT_EQ(completions("lockkeeper r"), "run\n");
  EXPECT_EQ(completions("lockkeeper run --tt"), "--ttl\n");
  EXPECT_EQ(completions("lockkeeper break --y"), "--yes\n");
  EXPECT_EQ(completions("lockkeeper show --yes"), "\n");
  EXPECT_EQ(completions("lockkeeper run --store redi"),
            "redis:// rediss:// redis+unix:/// redis+sentinel:// redis+cluster:// redis+legacy://\n");
  EXPECT_NE(completions("lockkeeper run k -- bas").find("bash"), std::string::npos);
}

TEST(Help, EveryCommandExplainsItselfWithExamplesOrExitCodes) {
  const Finished overview = runToEnd({LOCKKEEPER_COMMAND, "--help"});
  EXPECT_EQ(overview.exitCode, 0);
  for (const std::string command : {"run", "show", "list", "break", "limit", "migrate", "completion"}) {
    EXPECT_NE(overview.output.find("\n  " + command + " "), std::string::npos);
    const Finished help = runToEnd({LOCKKEEPER_COMMAND, command, "--help"});
    EXPECT_EQ(help.exitCode, 0);
    EXPECT_EQ(help.output.find("usage: lockkeeper " + command), 0U) << help.output;
    EXPECT_NE(help.output.find(command == "completion" ? "Example" : "Exit: "), std::string::npos)
        << help.output;
  }
  EXPECT_EQ(runToEnd({LOCKKEEPER_COMMAND, "--version"}).output.find("lockkeeper 0."), 0U);
}

}  // namespace
}  // namespace lockkeeper::test
