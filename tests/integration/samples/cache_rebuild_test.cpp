#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "process.h"
#include "redis_server.h"
#include "temp_folder.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using std::chrono::seconds;

class CacheRebuild : public ::testing::Test {
 protected:
  CacheRebuild() { std::filesystem::create_directory(cache()); }

  std::filesystem::path cache() const { return folder_ / "cache"; }
  std::unique_ptr<Process> start(const std::string& store, std::initializer_list<std::string> task) {
    std::vector<std::string> command{CACHE_REBUILD, store, cache()};
    command.insert(command.end(), task);
    const std::string name = "output" + std::to_string(++started_);
    return std::make_unique<Process>(
        command, ProcessOptions{.standardOutput = folder_ / name, .standardError = folder_ / "errors"});
  }
  /// How often the number-th process says that it has rebuilt the cache.
  int rebuilds(int number) const {
    return std::stoi(
        readFile(folder_ / ("output" + std::to_string(number))).substr(std::string("rebuilt it ").size()));
  }
  std::string errors() const { return readFile(folder_ / "errors"); }
  /// Lets the process stand still at a moment when there is such a file in the cache.
  bool pauseWhere(Process& process, const std::string& file, const std::string& content) const {
    return waitUntil([&] {
      process.pause();
      if (std::filesystem::exists(cache() / file) && readFile(cache() / file) == content) return true;
      process.resume();
      return false;
    });
  }

  RedisServer redis_;
  TempFolder folder_;
  int started_ = 0;
};

TEST_F(CacheRebuild, ReadersSeeWholeCachesAndEachRebuildIsDoneOnce) {
  const auto first = start(redis_.uri(), {"rebuild", "30"});
  const auto second = start(redis_.uri(), {"rebuild", "30"});
  const auto some = start(redis_.uri(), {"read", "20", "10"});
  const auto others = start(redis_.uri(), {"read", "20", "10"});
  for (const auto* each : {&first, &second, &some, &others}) {
    EXPECT_EQ((*each)->waitFor(seconds{120}), 0) << errors();
  }
  EXPECT_EQ(rebuilds(1) + rebuilds(2), 30);
}

TEST_F(CacheRebuild, WithoutTheLockReadersSeeAMixture) {
  const auto rebuilds = start("unlocked", {"rebuild", "1000000"});
  const auto readers = start("unlocked", {"read", "1000000", "4"});
  EXPECT_EQ(readers->waitFor(seconds{40}), 1) << errors();
}

TEST_F(CacheRebuild, ReadersGoOnWhileTheNextPagesAreMade) {
  ASSERT_EQ(start(redis_.uri(), {"rebuild", "1"})->waitFor(seconds{20}), 0) << errors();
  const auto rebuilding = start(redis_.uri(), {"rebuild", "1000000"});
  // Pages are there that are not put in.
  ASSERT_TRUE(waitUntil([&] {
    rebuilding->pause();
    const std::string next = std::to_string(std::stoi("0" + readFile(cache() / "rebuilt")) + 1);
    const bool building = next != "1" && std::filesystem::exists(cache() / "new0") &&
                          readFile(cache() / "new0") == next && !std::filesystem::exists(cache() / "new49");
    if (!building) rebuilding->resume();
    return building;
  }));
  EXPECT_EQ(start(redis_.uri(), {"read", "5", "4"})->waitFor(seconds{20}), 0) << errors();
  rebuilding->signal(SIGKILL);
}

TEST_F(CacheRebuild, OneThatIsKilledWhileItPutsPagesInFoolsNobody) {
  const auto killed = start(redis_.uri(), {"rebuild", "1000000"});
  ASSERT_TRUE(pauseWhere(*killed, "rebuilt", "0"));
  killed->signal(SIGKILL);
  killed->waitFor(seconds{20});
  redis_.command({"DEL", "cache"});  // as if its leases had ended
  const auto reader = start(redis_.uri(), {"read", "1"});
  EXPECT_FALSE(reader->waitFor(std::chrono::milliseconds{200})) << "it has taken a mixture for a cache";
  EXPECT_EQ(start(redis_.uri(), {"rebuild", "1"})->waitFor(seconds{20}), 0) << errors();
  EXPECT_EQ(reader->waitFor(seconds{20}), 0) << errors();
}

}  // namespace
}  // namespace lockkeeper::test
