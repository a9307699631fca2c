#include <atomic>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "forked_child.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/permit/semaphore.h"
#include "lockkeeper/permit/shared_mutex.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class ShareFault : public RedisFaultTest {
 protected:
  std::size_t holders(const std::string& key) const {
    return capability<Permits>(*direct)->shareHolders(key, soon()).size();
  }
};

TEST_F(ShareFault, AForkedChildHasNoShareAndItsParentKeepsIt) {
  LockManager manager(openProxied());
  auto mutex = std::make_unique<SharedMutex>(manager, "k");
  auto semaphore = std::make_unique<Semaphore>(manager, "s", 3);
  mutex->lock_shared();
  std::optional<Lock> permits = semaphore->acquire(2);
  const int failedCheck = inForkedChild([&] {
    if (mutex->lost().stop_possible()) return 1;
    mutex->unlock_shared();
    if (!throwsForked([&] { (void)mutex->try_lock_shared(); })) return 2;
    if (permits->valid() || permits->release() != ReleaseResult::notHeld) return 3;
    if (!throwsForked([&] { (void)semaphore->tryAcquire(); })) return 4;
    if (!throwsForked([&] { (void)semaphore->holders(); })) return 5;
    if (!throwsForked([&] { semaphore->resize(5); })) return 6;
    permits.reset();
    semaphore.reset();
    mutex.reset();
    return 0;
  });
  EXPECT_EQ(failedCheck, 0);
  EXPECT_EQ(holders("k"), 1U);
  EXPECT_EQ(holders("s"), 1U);
  EXPECT_EQ(proxy.connections(), 1U) << "the child has connected";
  EXPECT_EQ(permits->release(), ReleaseResult::released);
  mutex->unlock_shared();
  EXPECT_TRUE(waitUntil([&] { return isFree("k"); }));
}

TEST_F(ShareFault, WhatACallThatFailedMayHaveTakenIsGivenBack) {
  ManagerOptions options;
  options.operationTimeout = 200ms;
  options.backoffCap = 50ms;
  LockManager manager(openProxied("ioTimeout=200ms"), options);
  Semaphore semaphore(manager, "s", 3);
  EXPECT_EQ(semaphore.acquire().release(), ReleaseResult::released);
  proxy.set({.kind = ProxyFault::Kind::dropReplies});
  EXPECT_THROW((void)semaphore.tryAcquire(2), OutcomeUnknown);
  EXPECT_EQ(holders("s"), 1U) << "the server has granted it";
  proxy.passThrough();
  EXPECT_TRUE(waitUntil([&] { return isFree("s"); })) << "its lease runs for much longer";
}

TEST_F(ShareFault, AShareWhoseReleaseIsNotAwaitedIsFreeForTheNextCaller) {
  LockManager manager(direct);
  Semaphore semaphore(manager, "s", 3);
  // Once awaited, so that the driver knows that the server has the script.
  EXPECT_EQ(semaphore.acquire().release(), ReleaseResult::released);
  for (int round = 0; round < 100; ++round) EXPECT_TRUE(semaphore.tryAcquire(3)) << "round " << round;
  EXPECT_TRUE(waitUntil([&] { return isFree("s"); }));
}

TEST_F(ShareFault, ReadersAreLetInAmongWritersThatHandTheLockOn) {
  LockManager manager(direct);
  std::atomic<bool> over = false;
  std::atomic<int> readers = 0;
  std::atomic<int> mistakes = 0;
  std::vector<std::jthread> writers;
  for (int number = 0; number < 4; ++number) {
    writers.emplace_back([&] {
      while (!over) {
        const Lock held = manager.lock("k");
        if (readers != 0) ++mistakes;
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    const auto reading = manager.tryLockShared("k", {.waitFor = 10s});
    EXPECT_TRUE(reading) << "round " << round;
    if (!reading) break;
    ++readers;
    std::this_thread::sleep_for(1ms);
    --readers;
  }
  over = true;
  writers.clear();
  EXPECT_EQ(mistakes, 0);
}

TEST_F(ShareFault, TenThousandSharesOfAKeyAreRenewedTogether) {
  constexpr std::uint32_t many = 10'000;
  const auto patient = openRedis(server.port(), "ioTimeout=1m");
  std::vector<Claimant> all(many);
  std::atomic<int> refused = 0;
  {
    std::vector<std::jthread> threads;
    for (std::size_t first = 0; first < 8; ++first) {
      threads.emplace_back([&, first] {
        for (std::size_t each = first; each < many; each += 8) {
          all[each].key = "k";
          all[each].share = Share{1, many};
          if (!granted(patient->acquire(all[each].request(in(1min))))) ++refused;
        }
      });
    }
  }
  ASSERT_EQ(refused, 0);
  EXPECT_EQ(patient->release(all.back().claim(), in(1min)), ReleaseOutcome::released);
  std::vector<Renewal> renewals;
  for (const Claimant& each : all) renewals.push_back({.claim = each.claim(), .ttl = 2 * longTtl});
  patient->renew(renewals, in(1min));
  for (std::size_t each = 0; each + 1 < many; ++each) {
    ASSERT_EQ(renewals[each].outcome, RenewOutcome::renewed) << each << renewals[each].cause;
  }
  EXPECT_EQ(renewals.back().outcome, RenewOutcome::notOwner) << "of another one's share";
  EXPECT_EQ(capability<Permits>(*patient)->shareHolders("k", in(1min)).size(), many - 1);
  EXPECT_GT(std::stoll(server.command({"PTTL", "k"})), longTtl.count());
}

TEST_F(ShareFault, AllHoldersAreListedWhoseNumberExceedsAReply) {
  const auto proxied = openProxied("ioTimeout=1m");
  const Claimant reader{.key = "k", .share = Share{1, 100'000}};
  ASSERT_TRUE(granted(proxied->acquire(reader.request())));
  // Beside one whose lease has ended.
  server.command(
      {"EVAL",
       "local time = redis.call('TIME') "
       "local function put(number, ms, ending) "
       "redis.call('ZADD', KEYS[1], time[1] * 1000 + ms, string.format('%032x', number) .. ending) "
       "end "
       "for number = 1, 33000 do put(number, 600000, '@dead:1@1/100000') end "
       "put(33001, -1000, '@dead:1@1/100000')",
       "1", "k"});
  auto& permits = *capability<Permits>(*proxied);
  EXPECT_EQ(permits.shareHolders("k", in(1min)).size(), 33'001U);
  EXPECT_EQ(proxied->release(reader.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(proxy.connections(), 1U) << "locks share the connection";
}

}  // namespace
}  // namespace lockkeeper::test
