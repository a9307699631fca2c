#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "process.h"
#include "temp_folder.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {

/// A process that reads under the lock "k", readUntilLost(), stands still for longer than its lease: a writer
/// comes in, and the reader is told when it goes on. `command` starts it.
inline void expectAPausedReaderToLose(const std::vector<std::string>& command, LockManager& manager) {
  using namespace std::chrono_literals;
  const TempFolder folder;
  const auto output = folder / "output";
  Process reader(command, ProcessOptions{.standardOutput = output});
  ASSERT_TRUE(waitUntil([&] { return readFile(output) == "reads\n"; }));
  EXPECT_FALSE(manager.tryLock("k", {.waitFor = 7s})) << "it is renewed";
  reader.pause();
  auto writes = manager.tryLock("k", {.waitFor = 30s});
  ASSERT_TRUE(writes) << "it is counted for longer than its lease";
  reader.resume();
  EXPECT_EQ(reader.waitFor(20s), 0);
  EXPECT_EQ(readFile(output), "reads\nlost\n");
  EXPECT_TRUE(writes->valid());
  EXPECT_EQ(writes->release(), ReleaseResult::released);
}

}  // namespace lockkeeper::test
