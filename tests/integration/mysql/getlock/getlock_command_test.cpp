// The `lockkeeper` command on this store.

#include <chrono>
#include <memory>
#include <vector>

#include "getlock_fixture.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/queue.h"
#include "process.h"
#include "temp_folder.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class GetLockCommand : public GetLockTest {
 protected:
  std::string uri(const std::string& password = "p%40ss%2Fword") const {
    return "mysql+getlock://shop:" + password + "@127.0.0.1:" + std::to_string(store.server.port()) + "/" +
           store.database + "?createTable=true";
  }
  static std::vector<std::string> command(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), LOCKKEEPER_COMMAND);
    return arguments;
  }
  Finished run(const std::vector<std::string>& arguments) const {
    ProcessOptions options;
    options.environment["LOCKKEEPER_STORE"] = uri();
    return runToEnd(command(arguments), options);
  }

  const TempFolder folder;
};

TEST_P(GetLockCommand, RunsUnderTheLockWithItsFence) {
  const auto fence = [&] {
    const Finished finished =
        run({"run", "k", "--", "sh", "-c", "echo \"$LOCKKEEPER_KEY $LOCKKEEPER_FENCE\""});
    EXPECT_EQ(finished.exitCode, 0) << finished.errors;
    EXPECT_EQ(finished.output.substr(0, 2), "k ") << finished.output;
    return std::stoull(finished.output.substr(2));
  };
  const auto first = fence();
  EXPECT_GT(fence(), first);
  EXPECT_TRUE(store.isFree("k"));
}

TEST_P(GetLockCommand, ExcludesOthersWaitsAndShowsTheHolder) {
  ProcessOptions options;
  options.environment["LOCKKEEPER_STORE"] = uri();
  Process holder(command({"run", "--ttl", "1s", "shown", "--", "sh", "-c",
                          "touch " + (folder / "up").string() + "; sleep 60"}),
                 options);
  ASSERT_TRUE(waitUntil([&] { return std::filesystem::exists(folder / "up"); }));
  EXPECT_EQ(run({"run", "shown", "--", "true"}).exitCode, 75);
  EXPECT_EQ(run({"run", "--wait", "300ms", "shown", "--", "true"}).exitCode, 75);
  const Finished shown = run({"show", "shown"});
  EXPECT_NE(shown.output.find(":" + std::to_string(holder.pid())), std::string::npos) << shown.output;
  EXPECT_NE(shown.output.find("unknown"), std::string::npos)
      << "only the holder knows when: " << shown.output;
  EXPECT_EQ(shown.output.find("for ever"), std::string::npos) << shown.output;
  holder.signal(SIGKILL);
  const Finished next = run({"run", "--wait", "30s", "shown", "--", "echo", "mine"});
  EXPECT_EQ(next.output, "mine\n") << next.errors;
}

// The server grants the key to them one after the other, and none takes it up.
TEST_P(GetLockCommand, StoppedWaitersKeepAReleasedKeyForTwoTtlHoweverManyThereAre) {
  constexpr std::size_t count = 7;
  const Claimant holder;
  ASSERT_TRUE(granted(store.direct->acquire(holder.request())));
  ProcessOptions options;
  options.environment["LOCKKEEPER_STORE"] = uri();
  std::vector<std::unique_ptr<Process>> waiters;
  for (std::size_t i = 0; i < count; ++i) {
    waiters.push_back(std::make_unique<Process>(
        command({"run", "--ttl", "1s", "--wait", "60s", holder.key, "--", "true"}), options));
  }
  ASSERT_TRUE(waitUntil([&] { return store.server.waitingFor(holder.key).size() == count; }));
  for (const auto& each : waiters) each->pause();
  Claimant next;
  next.key = holder.key;
  ASSERT_EQ(store.direct->release(holder.claim(), soon()), ReleaseOutcome::released);
  const Instant released = now();
  const AcquireRequest request = requestFor(next, 1s);
  EXPECT_TRUE(granted(capability<Waitable>(*store.direct)->acquireWaiting(request, 30s, {})));
  EXPECT_LT(now() - released, 2 * request.ttl + 2s) << "a second for each would be " << count << " s";
}

TEST_P(GetLockCommand, ShowsNoPasswordAnywhere) {
  const Finished listed = runToEnd(command({"run", "--store", uri(), "k", "--", "sh", "-c",
                                            "tr '\\0' ' ' < /proc/$PPID/cmdline; ls -l /proc/self/fd"}));
  EXPECT_EQ(listed.exitCode, 0) << listed.errors;
  EXPECT_NE(listed.output.find(" run "), std::string::npos) << listed.output;
  EXPECT_EQ(listed.output.find("p%40ss"), std::string::npos) << listed.output;
  EXPECT_EQ(listed.output.find("socket:"), std::string::npos) << "the command inherits the connection";
  const Finished wrong = runToEnd(command({"run", "--store", uri("s3cr3t"), "k", "--", "true"}));
  EXPECT_EQ(wrong.exitCode, 78);
  EXPECT_NE(wrong.errors.find("Access denied"), std::string::npos) << wrong.errors;
  EXPECT_EQ(wrong.errors.find("s3cr3t"), std::string::npos) << wrong.errors;
}

TEST_P(GetLockCommand, SaysWhatIsWrong) {
  const Finished tooShort = run({"run", "--ttl", "500ms", "k", "--", "true"});
  EXPECT_EQ(tooShort.exitCode, 64);
  EXPECT_NE(tooShort.errors.find("at least 1s"), std::string::npos) << tooShort.errors;
  const Finished nobody =
      runToEnd(command({"show", "--store", "mysql+getlock://shop:s3cr3t@127.0.0.1:1/locks", "k"}));
  EXPECT_EQ(nobody.exitCode, 69);
  EXPECT_EQ(nobody.errors.find("s3cr3t"), std::string::npos) << nobody.errors;
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockCommand, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
