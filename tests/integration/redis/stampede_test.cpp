#include <algorithm>

#include "journal.h"
#include "lockkeeper/cached_loader.h"
#include "lockkeeper/redis/value_store.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// Two processes of 32 threads that want one expired key at the same time.
class Stampede : public RedisFaultTest {
 protected:
  static constexpr std::size_t callers = 64;

  /// Leaves a value that is not fresh any more.
  void leaveStale() const {
    const auto values =
        std::make_shared<redis::RedisValues>(redis::RedisOptions::fromUri(StoreUri::parse(server.uri())));
    CacheOptions options;
    options.freshFor = 1ms;
    options.staleFor = 1h;
    CachedLoader cache(
        values, std::make_shared<LockManager>(direct),
        [](std::string_view) { return std::optional<std::string>("old"); }, options);
    EXPECT_EQ(cache.get("hot"), "old");
    EXPECT_TRUE(waitUntil([&] { return !values->get("hot:fresh", systemClock()->now() + 5s); }));
  }
  void start() {
    for (int i = 0; i < 2; ++i) {
      processes.emplace_back(
          std::vector<std::string>{CACHE_CALLER, std::to_string(server.port()), folder.path()});
    }
    writeFile(folder / "go", "");
    EXPECT_TRUE(waitUntil([&] { return Journal(folder / "asking").lines().size() == callers; }));
    EXPECT_TRUE(waitUntil([&] { return loads() > 0; }));
  }
  void finish() {
    writeFile(folder / "finish", "");
    for (Process& process : processes) EXPECT_EQ(process.waitFor(90s), 0);
  }
  std::size_t loads() const { return Journal(folder / "loads").lines().size(); }
  std::size_t results(const std::string& value) const {
    const auto lines = Journal(folder / "results").lines();
    return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), value));
  }

  const TempFolder folder;
  std::vector<Process> processes;
};

TEST_F(Stampede, AnExpiredKeyIsLoadedOnceAndAllGetIt) {
  start();
  EXPECT_EQ(Journal(folder / "results").lines().size(), 0U) << "there is nothing to serve yet";
  finish();
  EXPECT_EQ(loads(), 1U);
  EXPECT_EQ(results("new"), callers);
}

TEST_F(Stampede, OneLoadsWhileAllOthersAreServedTheStaleValueAtOnce) {
  leaveStale();
  start();
  EXPECT_TRUE(waitUntil([&] { return results("old") == callers - 1; })) << "before the load is finished";
  finish();
  EXPECT_EQ(loads(), 1U);
  EXPECT_EQ(results("new"), 1U);
}

}  // namespace
}  // namespace lockkeeper::test
