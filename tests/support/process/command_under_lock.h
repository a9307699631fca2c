#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "process.h"
#include "temp_folder.h"
#include "wait_until.h"

namespace lockkeeper::test {

/// `lockkeeper run` with a command that goes on until it is told to end. LOCKKEEPER_COMMAND is the program.
class CommandUnderLock {
 public:
  CommandUnderLock(const std::string& store, const std::string& key)
      : run_({LOCKKEEPER_COMMAND, "run", "--store", store, "--ttl", "60s", key, "--", "sh", "-c",
              "touch " + path("up") + "; while [ ! -e " + path("end") + " ]; do sleep 0.05; done"},
             {.standardError = folder_ / "errors"}) {
    EXPECT_TRUE(waitUntil([&] { return std::filesystem::exists(folder_ / "up"); }))
        << readFile(folder_ / "errors");
  }

  /// The exit code of `lockkeeper run`, which is not told to end.
  std::optional<int> waitForIt() { return run_.waitFor(std::chrono::seconds{60}); }
  /// Lets the command end. The exit code of `lockkeeper run`.
  std::optional<int> end() {
    writeFile(folder_ / "end", "");
    return waitForIt();
  }
  std::string errors() const { return readFile(folder_ / "errors"); }

 private:
  std::string path(const std::string& name) const { return folder_ / name; }

  TempFolder folder_;
  Process run_;
};

inline Finished runOnce(const std::string& store, const std::string& key, const std::string& wait) {
  return runToEnd({LOCKKEEPER_COMMAND, "run", "--store", store, "--wait", wait, key, "--", "true"}, {},
                  std::chrono::seconds{90});
}

/// A command under a lock goes on through a failover that loses nothing: nobody else gets its lock, others
/// get theirs, and its lock is free once it has ended.
inline void expectOutlives(const std::string& store, const std::string& key,
                           const std::function<void()>& failover) {
  CommandUnderLock holder(store, key);
  failover();
  const Finished other = runOnce(store, "{" + key + "}-other", "60s");
  EXPECT_EQ(other.exitCode, 0) << other.errors;
  EXPECT_EQ(runOnce(store, key, "0s").exitCode, 75);
  EXPECT_EQ(holder.end(), 0) << holder.errors();
  const Finished next = runOnce(store, key, "60s");
  EXPECT_EQ(next.exitCode, 0) << next.errors;
}

}  // namespace lockkeeper::test
