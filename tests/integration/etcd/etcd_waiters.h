#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "etcd_fixture.h"
#include "lockkeeper/driver/capabilities.h"

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
    return waitUntil([&] { return cluster().waitingClaims() == count; }, bound);
  }
  /// The server tells streams of waiters who have come since then that they are there.
  static bool streamsSince(std::size_t messages, std::size_t streams = 1) {
    return waitUntil([&] { return cluster().watchMessages() >= messages + streams; });
  }
  static bool done(const Result& result, std::chrono::milliseconds bound = 20s) {
    return result.wait_for(bound) == std::future_status::ready;
  }

  std::stop_source stop_;
  const std::string key = Claimant().key;
};

}  // namespace lockkeeper::test
