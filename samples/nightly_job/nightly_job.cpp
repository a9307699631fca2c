// A job that runs once at each tick, on however many machines it is installed. See README.md beside it.

#include <lockkeeper/lock_manager.h>
#include <lockkeeper/redis/use.h>
#include <lockkeeper/schedule/scheduled_task.h>
#include <lockkeeper/store_registry.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <stop_token>
#include <string>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  lockkeeper::StoreRegistry stores;
  lockkeeper::redis::use(stores);
  const auto locks =
      std::make_shared<lockkeeper::LockManager>(stores.open(argc > 1 ? argv[1] : "redis://127.0.0.1:6379/0"));
  // For people who do not want to wait for the night: nightly_job STORE now, at each full second.
  const bool now = argc > 2 && std::string(argv[2]) == "now";
  const auto when =
      now ? lockkeeper::Schedule::every(1s)
          : lockkeeper::Schedule::cron("30 2 * * *", lockkeeper::TimeZone::named("Europe/Berlin"));

  const auto report = std::make_shared<lockkeeper::ExclusiveTask>(
      locks, lockkeeper::TaskOptions{.name = "nightly", .atMost = 20min},
      [](const lockkeeper::Lock& lock, std::stop_token) {
        std::cout << "runs, fence " << lock.requireFence() << std::endl;
      });
  const lockkeeper::ScheduledTask nightly(report, when);
  std::cout << "waits for its time; end with Enter" << std::endl;
  std::cin.get();
}
