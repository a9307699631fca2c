#pragma once

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/permit/semaphore.h"

namespace lockkeeper::test {

/// Takes so many of the five permits of the semaphore "s", and reads or writes under the lock "k", each for a
/// ttl of one second, again and again until the process is killed.
[[noreturn]] inline void takePermits(std::shared_ptr<LockDriver> driver, const std::string& permits) {
  using namespace std::chrono_literals;
  LockManager manager(std::move(driver));
  Semaphore semaphore(manager, "s", 5, {.ttl = 1s});
  for (int round = 0;; ++round) {
    const Lock held = semaphore.acquire(static_cast<std::uint32_t>(std::stoul(permits)));
    const Lock lock = round % 4 == 0 ? manager.lock("k", {.ttl = 1s}) : manager.lockShared("k", {.ttl = 1s});
    std::this_thread::sleep_for(3ms);
  }
}

/// Reads under the lock "k", for a ttl of six seconds, and says "lost" when it is told that it has lost it.
inline void readUntilLost(std::shared_ptr<LockDriver> driver) {
  using namespace std::chrono_literals;
  LockManager manager(std::move(driver));
  const Lock lock = manager.lockShared("k", {.ttl = 6s});
  std::cout << "reads" << std::endl;
  while (!lock.lost().stop_requested()) std::this_thread::sleep_for(3ms);
  std::cout << (lock.valid() ? "still valid" : "lost") << std::endl;
}

/// Does what a program is told: "read", or to take so many permits.
inline int takePart(std::shared_ptr<LockDriver> driver, const std::string& task) {
  if (task != "read") takePermits(std::move(driver), task);
  readUntilLost(std::move(driver));
  return 0;
}

}  // namespace lockkeeper::test
