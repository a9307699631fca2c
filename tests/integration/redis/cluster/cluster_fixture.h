#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "claimant.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "redis_cluster.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {

inline std::shared_ptr<LockDriver> openStore(const std::string& uri) {
  StoreRegistry registry;
  redis::use(registry);
  return registry.open(uri);
}

/// One cluster of three masters with a replica each, for all tests of a program, which leave it well.
class RedisClusterTest : public ::testing::Test {
 protected:
  static RedisCluster& cluster() {
    if (!shared()) shared() = std::make_unique<RedisCluster>();
    return *shared();
  }
  static void TearDownTestSuite() { shared().reset(); }

  static std::shared_ptr<LockDriver> open(const std::string& query = "") {
    return openStore(cluster().uri(query));
  }
  /// How often all nodes together have been asked for the map of the slots.
  static std::size_t looksAtTheMap() {
    std::size_t count = 0;
    for (std::size_t node = 0; node < cluster().size(); ++node) {
      if (!cluster().runs(node)) continue;
      const std::string info = cluster().node(node).command({"INFO", "commandstats"});
      const std::size_t at = info.find("cmdstat_cluster|slots:calls=");
      if (at != std::string::npos) count += std::stoul(info.substr(info.find('=', at) + 1));
    }
    return count;
  }
  /// The node that has the key's slot now.
  static std::size_t masterOf(const std::string& key, std::size_t asked = 0) {
    return cluster().masterOf(RedisCluster::slotOf(key), asked);
  }
  /// A key whose slot the node has now.
  static std::string keyAt(std::size_t node, const std::string& beginning) {
    for (int number = 0;; ++number) {
      std::string key = beginning + std::to_string(number);
      if (masterOf(key, node) == node) return key;
    }
  }

 private:
  static std::unique_ptr<RedisCluster>& shared() {
    static std::unique_ptr<RedisCluster>& instance = *new std::unique_ptr<RedisCluster>();
    return instance;
  }
};

/// A slot of the first master, which goes to the second one and, in the end, back.
class MovedSlot : public RedisClusterTest {
 protected:
  MovedSlot() { who.key = key; }
  ~MovedSlot() override {
    if (masterOf(key) == to) cluster().move(slot, to, from);
  }

  static std::string newKey(std::size_t node) {
    return keyAt(node, "moved-" + Token::generate(*systemRandom()).hex());
  }
  /// Those who wait for the key, each with a client of its own.
  class Waiters {
   public:
    /// Who has been served, in that order. Waits until all have.
    std::vector<int> served() {
      threads_.clear();
      return served_;
    }

   private:
    friend MovedSlot;
    std::mutex mutex_;
    std::vector<int> served_;
    std::vector<std::jthread> threads_;
  };
  /// They come one after the other, and each gets a fence above `former`.
  std::unique_ptr<Waiters> waitInOrder(int count, Fence former) const {
    auto waiters = std::make_unique<Waiters>();
    for (int number = 0; number < count; ++number) {
      waiters->threads_.emplace_back([&, number, former, all = waiters.get(), own = open()] {
        LockManager locks(own);
        const Lock lock = locks.lock(key, {.waitFor = std::chrono::seconds{60}});
        EXPECT_GT(*lock.fence(), former);
        const std::lock_guard guard(all->mutex_);
        all->served_.push_back(number);
      });
      EXPECT_TRUE(waitUntil([&] {
        return cluster().node(from).command({"ZCARD", queue}) == std::to_string(number + 1);
      }));
    }
    return waiters;
  }
  void beginMove() { cluster().beginMove(slot, from, to); }
  void moveLock() { cluster().moveKey(key, from, to); }
  void endMove() {
    cluster().moveAllKeys(slot, from, to);
    cluster().endMove(slot, to);
  }

  const std::size_t from = 0;
  const std::size_t to = 1;
  const std::string key = newKey(from);
  const std::string queue = "{" + key + "}:lockkeeper:queue";
  const std::uint16_t slot = RedisCluster::slotOf(key);
  const std::shared_ptr<LockDriver> driver = open();
  Claimant who{};
};

/// Masters die, stand still, and are replaced.
class ClusterFailover : public RedisClusterTest {
 protected:
  /// The masters of three keys, and so all of them.
  static std::vector<std::size_t> masters() {
    std::set<std::size_t> found;
    for (int number = 0; found.size() < 3; ++number) found.insert(masterOf("m" + std::to_string(number)));
    return {found.begin(), found.end()};
  }
  static std::vector<std::size_t> replicas() {
    std::vector<std::size_t> found;
    for (std::size_t node = 0; node < cluster().size(); ++node) {
      if (cluster().node(node).command({"INFO", "replication"}).find("role:slave") != std::string::npos)
        found.push_back(node);
    }
    return found;
  }
  /// Returns when all others know which node has the master's slots then.
  static void kill(std::size_t master, const std::string& itsKey) {
    cluster().kill(master);
    for (std::size_t witness = 0; witness < cluster().size(); ++witness) {
      if (witness == master) continue;
      EXPECT_TRUE(waitUntil([&] {
        const std::size_t now = masterOf(itsKey, witness);
        return now != master && now < cluster().size();
      }));
    }
  }
};

inline Claimant claimOf(const std::string& key) {
  Claimant who{};
  who.key = key;
  return who;
}

/// How often claims have been in doubt.
class DoubtCount final : public LossListener {
 public:
  static std::shared_ptr<DoubtCount> of(LockDriver& driver) {
    auto count = std::make_shared<DoubtCount>();
    capability<DoubtReporting>(driver)->addDoubtListener(count);
    return count;
  }

  void claimsLost(std::span<const Token> /*tokens*/) noexcept override {}
  void claimsInDoubt() noexcept override { ++value; }

  std::atomic<int> value = 0;
};

inline RenewOutcome renew(LockDriver& driver, const Claimant& who) {
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  driver.renew({&renewal, 1}, soon());
  return renewal.outcome;
}

}  // namespace lockkeeper::test
