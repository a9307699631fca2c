#pragma once

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "etcd_fixture.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/queue.h"

namespace lockkeeper::test {

using namespace std::chrono_literals;

/// One key of a single server, and those who wait for it: until the test ends, unless it stops them itself.
class EtcdWaiters : public ::testing::Test {
 protected:
  using Result = std::future<AcquireResult>;

  static EtcdCluster& cluster() {
    static EtcdCluster one({.nodes = 1});
    return one;
  }
  static std::shared_ptr<LockDriver> open() { return openEtcd(cluster().uri()); }
  ~EtcdWaiters() override { stop_.request_stop(); }

  Claimant another() const {
    Claimant who;
    who.key = key;
    return who;
  }
  Claimant sharer(std::uint32_t weight, std::uint32_t limit) const {
    Claimant who = another();
    who.share = Share{weight, limit};
    return who;
  }
  static Result wait(const std::shared_ptr<LockDriver>& driver, const Claimant& who, std::stop_token stop) {
    return std::async(std::launch::async, [driver, who, stop = std::move(stop)] {
      return capability<Waitable>(*driver)->acquireWaiting(who.request(), 1min, stop);
    });
  }
  Result wait(const std::shared_ptr<LockDriver>& driver, const Claimant& who) const {
    return wait(driver, who, stop_.get_token());
  }
  static bool queued(std::size_t count, std::chrono::milliseconds bound = 20s) {
    return waitUntil([&] { return cluster().waitingClaims().size() == count; }, bound);
  }
  /// The server tells streams of waiters who have come since then that they are there.
  static bool streamsSince(std::size_t messages, std::size_t streams = 1) {
    return waitUntil([&] { return cluster().watchMessages() >= messages + streams; });
  }
  /// Which of them is the next to be done; their number when none is after 20 s. On a machine that stands
  /// still, a waiter may lose its place and queue again behind the others.
  static std::size_t nextOf(const std::vector<Result>& results) {
    std::size_t next = results.size();
    waitUntil([&] {
      const auto isDone = [](const Result& each) { return each.valid() && done(each, 0s); };
      next = static_cast<std::size_t>(std::ranges::find_if(results, isDone) - results.begin());
      return next < results.size();
    });
    return next;
  }
  static bool done(const Result& result, std::chrono::milliseconds bound = 20s) {
    return result.wait_for(bound) == std::future_status::ready;
  }

  /// Ends the waits when a test is left early: declared behind their futures, which would wait for them.
  struct EndOfWaits {
    std::stop_source& stop;
    ~EndOfWaits() { stop.request_stop(); }
  };

  std::stop_source stop_;
  const std::string key = Claimant().key;
};

}  // namespace lockkeeper::test
