#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "migration_fixture.h"
#include "stall_watch.h"

namespace lockkeeper::test {

/// Real processes at work while their locks move: each adds to counters in files.
class LiveFleet : public MigrationTest {
 protected:
  using milliseconds = std::chrono::milliseconds;
  using Processes = std::vector<std::unique_ptr<Process>>;

  Processes start(int count, const std::vector<std::string>& command) const {
    ProcessOptions options;
    options.standardError = folder / "errors";
    Processes started;
    for (int i = 0; i < count; ++i) started.push_back(std::make_unique<Process>(command, options));
    return started;
  }

  std::string legacyUri() const {
    return "redis+legacy://127.0.0.1:" + std::to_string(redis.port()) + "/1?keyPrefix=lock:";
  }
  /// Clients in PHP beside ours, on one database, until the file "stop-legacy" appears.
  Processes startLegacy(const std::string& file = "legacy_lock.php",
                        const std::string& lockClass = "LegacyLock") const {
    std::filesystem::remove(folder / "stop-legacy");
    return start(4, {"php", std::string(LEGACY_FLEET) + "/legacy_worker.php", std::to_string(redis.port()),
                     "1", folder.path(), std::string(LEGACY_CLIENTS) + "/" + file, lockClass});
  }

  std::string errors() const { return readFile(folder / "errors"); }
  long long counted() const {
    long long sum = 0;
    for (const char* key : fleetKeys) sum += std::atoll(readFile(folder / key).c_str());
    return sum;
  }
  bool progress() const {
    constexpr long long enough = 50;
    const long long before = counted();
    return waitUntil([&] { return counted() > before + enough; });
  }

  /// Advances, and waits until the change is complete and work has gone on.
  void takeStep(const std::string& rule, const std::string& rules) const {
    advance(rule);
    ASSERT_TRUE(statusSays("current:   " + rules + "\n")) << rule << "\n" << status();
    ASSERT_TRUE(statusSays("next step: none is under way")) << status();
    ASSERT_TRUE(progress()) << rule << "\n" << errors();
  }

  /// What processes have done.
  struct Work {
    long long count = 0;
    milliseconds longestStop{0};  // between two successes of one of them with one key
  };

  /// Ends them by the file `stop`.
  Work finish(const Processes& fleet, const std::string& stop) const {
    writeFile(folder / stop, "");
    Work all;
    for (const auto& process : fleet) {
      EXPECT_EQ(process->waitFor(std::chrono::seconds{60}), 0) << errors();
      std::istringstream said(readFile(folder / ("done." + std::to_string(process->pid()))));
      long long count = 0;
      milliseconds::rep longestStop = 0;
      said >> count >> longestStop;
      EXPECT_GT(count, 0);
      all.count += count;
      all.longestStop = std::max(all.longestStop, milliseconds(longestStop));
    }
    return all;
  }

  /// One ttl, and what this machine adds: a lock goes from hand to hand by some ten wake-ups.
  milliseconds longestStopAllowed() const { return fleetTtl + 10 * stalls.longest(); }

  const StallWatch stalls{};
};

}  // namespace lockkeeper::test
