#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fault_proxy.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/listener.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store/quorum.h"
#include "lockkeeper/store_registry.h"
#include "redis_fixture.h"
#include "redis_server.h"
#include "redlock_uri.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {

constexpr std::size_t nodeCount = 5;
constexpr std::chrono::milliseconds nodeTimeout{500};

/// For servers that have only just started, and locks with a long ttl.
constexpr const char* withoutGuard = "restartGuard=off&nodeTimeout=500ms&connectTimeout=500ms&ioTimeout=1s";

/// What the rounds of a driver have been like.
class Rounds final : public Listener {
 public:
  void on(const Event& event) override {
    const std::lock_guard guard(mutex_);
    if (event.kind == EventKind::nodeAsked)
      asked_.push_back({std::string(event.store), event.node, event.duration()});
    if (event.kind == EventKind::noted)
      notes_ += std::string(event.store) + ": " + std::string(event.text) + "\n";
    if (event.kind == EventKind::renewalFailed) ++suspected_;
  }

  /// How often the node on `port` has done so since the last clear().
  int count(std::uint16_t port, NodeOutcome outcome) const {
    const std::lock_guard guard(mutex_);
    int result = 0;
    for (const Asked& each : asked_) {
      const bool here = each.node.find(":" + std::to_string(port) + "/") != std::string::npos;
      if (here && each.outcome == outcome) ++result;
    }
    return result;
  }
  void clear() {
    const std::lock_guard guard(mutex_);
    asked_.clear();
  }
  std::string notes() const {
    const std::lock_guard guard(mutex_);
    return notes_;
  }
  int suspected() const {
    const std::lock_guard guard(mutex_);
    return suspected_;
  }

 private:
  struct Asked {
    std::string node;
    NodeOutcome outcome;
    std::chrono::nanoseconds latency;
  };
  mutable std::mutex mutex_;
  std::vector<Asked> asked_;
  std::string notes_;
  int suspected_ = 0;
};

inline std::shared_ptr<LockDriver> openRedlock(const std::string& uri,
                                               std::shared_ptr<Listener> listener = nullptr) {
  StoreRegistry registry;
  redis::use(registry);
  Environment environment;
  environment.listener = std::move(listener);
  return registry.open(uri, environment);
}

/// Five real servers, each with a proxy in front of it.
class RedlockTest : public ::testing::Test {
 protected:
  std::vector<std::uint16_t> ports() const {
    std::vector<std::uint16_t> all;
    for (const auto& proxy : proxies) all.push_back(proxy->port());
    return all;
  }
  std::shared_ptr<LockDriver> open(const std::string& query = withoutGuard,
                                   std::shared_ptr<Listener> listener = nullptr) const {
    return openRedlock(redlockUri(ports(), query), std::move(listener));
  }

  static AcquireRequest request(const Claimant& who, std::chrono::milliseconds ttl,
                                Instant deadline = soon()) {
    return {.claim = who.claim(), .ttl = ttl, .deadline = deadline};
  }

  bool has(std::size_t node, const std::string& key) const {
    return servers[node].command({"EXISTS", key}) == "1";
  }
  /// How many of the nodes have the key. All must be running.
  std::size_t votes(const std::string& key) const {
    std::size_t count = 0;
    for (std::size_t node = 0; node < nodeCount; ++node) count += has(node, key);
    return count;
  }

  /// The driver has a connection to each node, and each has agreed to something.
  static bool allAgree(LockDriver& driver) {
    return waitUntil([&] {
      const Claimant who{};
      if (!granted(driver.acquire(who.request()))) return false;
      auto& quorate = *capability<Quorate>(driver);
      std::size_t here = 0;
      for (const Quorate::View& view : quorate.views(who.key, soon())) here += view.holder.has_value();
      (void)driver.release(who.claim(), soon());
      return here == nodeCount;
    });
  }

  std::array<RedisServer, nodeCount> servers;
  std::array<std::unique_ptr<FaultProxy>, nodeCount> proxies = [this] {
    std::array<std::unique_ptr<FaultProxy>, nodeCount> made;
    for (std::size_t node = 0; node < nodeCount; ++node)
      made[node] = std::make_unique<FaultProxy>(servers[node].port());
    return made;
  }();
};

}  // namespace lockkeeper::test
