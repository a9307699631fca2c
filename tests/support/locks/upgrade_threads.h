#pragma once

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/permit/upgradeable_lock.h"

namespace lockkeeper::test {

/// What threads saw that read and wrote two numbers under one key.
struct NumbersSeen {
  int mistakes = 0;  ///< How often somebody else wrote beside one of them.
  int writes = 0;
};

/// Two threads that upgrade, two that read and two that write, each for so many rounds: one of each pair by
/// each manager. Each upgrade and each lock is one write.
inline NumbersSeen upgradeReadAndWrite(LockManager& one, LockManager& other, const std::string& key,
                                       int rounds) {
  // Both numbers are the same, except while somebody writes.
  std::array<std::atomic<int>, 2> numbers{};
  std::atomic<int> mistakes = 0;
  const auto write = [&] {
    if (numbers[0] != numbers[1]) ++mistakes;
    ++numbers[0];
    std::this_thread::yield();
    ++numbers[1];
  };
  {
    std::vector<std::jthread> threads;
    for (int number = 0; number < 6; ++number) {
      threads.emplace_back([&, number] {
        LockManager& own = number % 2 == 0 ? one : other;
        for (int round = 0; round < rounds; ++round) {
          if (number < 2) {
            auto held = UpgradeableLock::lock(own, key);
            const int seen = numbers[0];
            held.upgrade();
            if (numbers[0] != seen) ++mistakes;
            write();
            held.downgrade();
            if (numbers[0] != seen + 1) ++mistakes;
          } else if (number < 4) {
            const Lock held = own.lockShared(key);
            const int seen = numbers[0];
            std::this_thread::yield();
            if (numbers[1] != seen) ++mistakes;
          } else {
            const Lock held = own.lock(key);
            write();
          }
        }
      });
    }
  }
  return {.mistakes = mistakes, .writes = numbers[0]};
}

}  // namespace lockkeeper::test
