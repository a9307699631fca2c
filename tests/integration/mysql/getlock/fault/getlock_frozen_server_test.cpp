#include <algorithm>
#include <future>
#include <vector>

#include "frozen_server.h"
#include "getlock_operations.h"
#include "hosts/session_opener.h"
#include "lockkeeper/lock_manager.h"
#include "session/server_options.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

constexpr auto connectTimeout = 1s;
constexpr auto ioTimeout = 500ms;
constexpr const char* shortTimeouts = "ioTimeout=500ms&connectTimeout=1s";

/// The server is stopped by SIGSTOP: connections stay, nothing is answered.
class FrozenGetLockServer : public ::testing::TestWithParam<BrandAndOperation> {
 protected:
  void TearDown() override { store.server.resume(); }

  GetLockStore store{std::get<Brand>(GetParam())};
};

TEST_P(FrozenGetLockServer, EveryCallReturnsByItsDeadlineAndLeavesNothingBehind) {
  const Operation& operation = std::get<Operation>(GetParam());
  const auto driver = store.open(shortTimeouts);
  const Claimant who{};
  operation.prepare(heldByTheDriver(operation) ? *driver : *store.direct, who);
  (void)driver->holder(who.key, soon());

  store.server.pause();
  const Instant deadline = in(attemptTime);
  const std::string said = attempt(operation, *driver, who, deadline);
  EXPECT_LT(now(), deadline + ioTimeout + connectTimeout + schedulingSlack);
  const ErrorCode wanted =
      operation.changesTheStore ? ErrorCode::outcomeUnknown : ErrorCode::storeUnavailable;
  EXPECT_EQ(said, std::string("error: ") + toString(wanted));
  store.server.resume();

  if (std::string(operation.name) == "AcquireBusy") return;
  (void)driver->release(who.claim(), soon());
  EXPECT_TRUE(waitUntil(
      [&] { return heldByTheDriver(operation) || !operation.changesTheStore || store.isFree(who.key); }));
  const Claimant next{};
  EXPECT_TRUE(granted(driver->acquire(next.request())));
  EXPECT_EQ(driver->release(next.claim(), soon()), ReleaseOutcome::released);
}

TEST_P(FrozenGetLockServer, AlsoWhenItIsNotConnected) {
  const Operation& operation = std::get<Operation>(GetParam());
  if (heldByTheDriver(operation)) GTEST_SKIP() << "nothing is held without a connection";
  const auto driver = store.open(shortTimeouts);
  const Claimant who{};
  operation.prepare(*store.direct, who);
  store.server.pause();
  const Instant deadline = in(attemptTime);
  const std::string said = attempt(operation, *driver, who, deadline);
  EXPECT_LT(now(), deadline + ioTimeout + connectTimeout + schedulingSlack);
  EXPECT_EQ(said, std::string("error: ") + toString(ErrorCode::storeUnavailable)) << "nothing was sent";
}

INSTANTIATE_TEST_SUITE_P(Servers, FrozenGetLockServer, allBrandsAndOperations(), brandAndOperationName);

class FrozenGetLockHolder : public GetLockTest {
 protected:
  void TearDown() override { store.server.resume(); }

  const FreezableStore frozen = freezable(store, shortTimeouts, ioTimeout + connectTimeout);
};

TEST_P(FrozenGetLockHolder, LocksOutliveAServerThatStoodStillForLessThanTheirTtl) {
  ManagerOptions options;
  options.operationTimeout = attemptTime;
  LockManager manager(store.open(shortTimeouts), options);
  std::vector<Lock> locks;
  for (int i = 0; i < 5; ++i) locks.push_back(manager.lock("stood-still:" + std::to_string(i), {.ttl = 6s}));
  store.server.pause();
  EXPECT_TRUE(waitUntil([&] { return locks[0].state() == LockState::suspect; })) << "the freeze must be felt";
  EXPECT_THROW(locks[1].renew(), Error);
  EXPECT_TRUE(locks[1].valid());
  store.server.resume();
  EXPECT_TRUE(waitUntil([&] {
    return std::ranges::all_of(locks, [](const Lock& lock) { return lock.state() == LockState::held; });
  }));
  for (Lock& lock : locks) EXPECT_EQ(lock.release(), ReleaseResult::released);
}

TEST_P(FrozenGetLockHolder, IsToldBeforeItsLeaseEnds) { freezeUnderAHolder(frozen); }

TEST_P(FrozenGetLockHolder, AClaimThatWasGivenUpDoesNotKeepTheKey) { freezeBeforeAClaim(frozen); }

TEST_P(FrozenGetLockHolder, DestructionIsBounded) {
  ManagerOptions options;
  options.operationTimeout = attemptTime;
  auto manager = std::make_unique<LockManager>(store.open(shortTimeouts), options);
  std::optional<Lock> lock = manager->lock("destroyed");
  store.server.pause();
  const Instant started = now();
  lock.reset();
  manager.reset();
  EXPECT_LT(now(), started + 3 * attemptTime + 2 * ioTimeout + schedulingSlack);
  store.server.resume();
  EXPECT_TRUE(waitUntil([&] { return store.isFree("destroyed"); }));
}

INSTANTIATE_TEST_SUITE_P(Brands, FrozenGetLockHolder, ::testing::ValuesIn(allBrands), brandName);

class FrozenServerSession : public GetLockTest {
 protected:
  void TearDown() override { store.server.resume(); }
};

TEST_P(FrozenServerSession, EndsInTimeForOneWhoSendsMoreThanIsTaken) {
  mysql::SessionOpener opener(
      mysql::ServerOptions::fromUri(StoreUri::parse(store.server.uri(store.database))), {}, {});
  const auto session = opener.open(soon());
  constexpr std::size_t moreThanSocketsBuffer = 32U << 20U;
  const std::string statement = "SELECT '" + std::string(moreThanSocketsBuffer, 'x') + "'";
  store.server.pause();
  auto lost =
      std::async(std::launch::async, [&] { return session->query(statement, in(attemptTime)).lost(); });
  EXPECT_EQ(lost.wait_for(attemptTime + schedulingSlack), std::future_status::ready);
  store.server.resume();
  EXPECT_TRUE(lost.get());
}

INSTANTIATE_TEST_SUITE_P(Brands, FrozenServerSession, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
