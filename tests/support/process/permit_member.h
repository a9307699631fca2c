#pragma once

#include <chrono>
#include <cstdint>
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

}  // namespace lockkeeper::test
