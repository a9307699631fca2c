#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "migration_fixture.h"

namespace lockkeeper::test {

/// Real processes at work while their locks move: each adds to counters in files.
class LiveFleet : public MigrationTest {
 protected:
  using Processes = std::vector<std::unique_ptr<Process>>;

  Processes start(int count, const std::vector<std::string>& command) const {
    ProcessOptions options;
    options.standardError = folder / "errors";
    Processes started;
    for (int i = 0; i < count; ++i) started.push_back(std::make_unique<Process>(command, options));
    return started;
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

  /// Advances, and waits until the rules have settled and work has gone on.
  void takeStep(const std::string& rule, const std::string& settled) const {
    advance(rule);
    ASSERT_TRUE(statusSays("settled:   " + settled + "\n")) << rule << "\n" << status();
    ASSERT_TRUE(statusSays("next step: none is under way")) << status();
    ASSERT_TRUE(progress()) << rule << "\n" << errors();
  }

  /// Ends them by the file `stop`; returns how often they have counted.
  long long finish(const Processes& fleet, const std::string& stop) const {
    writeFile(folder / stop, "");
    long long done = 0;
    for (const auto& process : fleet) {
      EXPECT_EQ(process->waitFor(std::chrono::seconds{60}), 0) << errors();
      std::istringstream said(readFile(folder / ("done." + std::to_string(process->pid()))));
      long long mine = 0;
      long long longestStop = 0;
      said >> mine >> longestStop;
      EXPECT_GT(mine, 0);
      EXPECT_LT(longestStop, 10 * fleetTtl.count()) << "a worker hung";
      done += mine;
    }
    return done;
  }
};

}  // namespace lockkeeper::test
