// What the server says about a cycle of named locks, and what becomes of one that it cannot see: the driver's
// sessions that wait hold nothing.

#include <atomic>
#include <barrier>
#include <deque>
#include <future>
#include <thread>
#include <vector>

#include "getlock/getlock_options.h"
#include "getlock/session/getlock_statements.h"
#include "getlock_fixture.h"
#include "hosts/session_opener.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/queue.h"
#include "session/reply_fault.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using mysql::Reply;
using mysql::ServerSession;

class GetLockDeadlock : public GetLockTest {
 protected:
  std::unique_ptr<ServerSession> session() {
    const auto uri = StoreUri::parse(
        "mysql+getlock://shop:p%40ss%2Fword@127.0.0.1:" + std::to_string(store.server.port()) + "/" +
        store.database + "?fence=off");
    return openers.emplace_back(mysql::GetLockOptions::fromUri(uri), mysql::Preparation{}, Environment{})
        .open(soon());
  }
  static const Reply& claim(ServerSession& session, const std::string& name, std::chrono::seconds wait) {
    std::string batch;
    mysql::statements::addClaim(batch, name, wait);
    return session.query(batch, in(1min));
  }

  std::deque<mysql::SessionOpener> openers;
};

TEST_P(GetLockDeadlock, NamesBothKeys) {
  (void)store.direct->holder("makes the table", soon());
  const auto first = session();
  const auto second = session();
  ASSERT_EQ(claim(*first, "left", 0s).number(2), 1U);
  ASSERT_EQ(claim(*second, "right", 0s).number(2), 1U);
  auto waiting = std::async(std::launch::async, [&] { return claim(*second, "left", 30s).number(2); });
  // It has begun to wait: before, the server might find the cycle from that side and refuse the other one.
  ASSERT_TRUE(waitUntil([&] { return store.server.waitingFor("left").size() == 1; }));
  const Reply refused = claim(*first, "right", 30s);
  EXPECT_EQ(refused.error, GetParam() == Brand::mariadb ? 1213U : 3058U) << refused.reason;
  EXPECT_EQ(refused.answered, 0U);
  try {
    mysql::throwLockFault(refused, "right", {"left"}, "the store");
  } catch (const Deadlock& deadlock) {
    const std::string said = deadlock.what();
    EXPECT_NE(said.find("'left'"), std::string::npos) << said;
    EXPECT_NE(said.find("'right'"), std::string::npos) << said;
  }
  EXPECT_EQ(first->query("SELECT RELEASE_LOCK('left')", soon()).number(0), 1U);
  EXPECT_EQ(waiting.get(), 1U) << "the other one is served";
}

TEST_P(GetLockDeadlock, OfTwoProcessesEndsWithTheirWaitsAndCostsNoLock) {
  const auto one = store.open();
  const auto other = store.open();
  const Claimant left{};
  const Claimant right{};
  ASSERT_TRUE(granted(one->acquire(left.request())));
  ASSERT_TRUE(granted(other->acquire(right.request())));
  const Instant end = in(2s);
  const auto wait = [&](LockDriver& driver, const std::string& key) {
    const Claimant who{.key = key};
    return capability<Waitable>(driver)->acquireWaiting(who.request(in(1min)), end - now(), {});
  };
  auto first = std::async(std::launch::async, [&] { return wait(*one, right.key); });
  EXPECT_FALSE(granted(wait(*other, left.key)));
  EXPECT_FALSE(granted(first.get()));
  EXPECT_GE(now(), end) << "nobody has seen the cycle";
  EXPECT_LT(now(), end + schedulingSlack);
  EXPECT_EQ(one->release(left.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(other->release(right.claim(), soon()), ReleaseOutcome::released);
}

// New counter rows, and their neighbours, from many sessions at the same moment.
TEST_P(GetLockDeadlock, TheFirstTouchOfNewNamesMakesNone) {
  constexpr int clients = 12;
  constexpr int keys = 200;
  std::atomic<int> errors{0};
  std::barrier start(clients);
  {
    std::vector<std::jthread> threads;
    for (int client = 0; client < clients; ++client) {
      threads.emplace_back([&, client] {
        const auto driver = store.open("connections=1");
        (void)driver->holder("connects", soon());
        start.arrive_and_wait();
        for (int step = 0; step < keys; ++step) {
          Claimant who;
          // Two at a time meet at a key; the others touch its neighbours.
          const int i = (step * (client / 2 % 2 == 0 ? 1 : keys - 1) + client / 4 * 7) % keys;
          who.key = "new-" + std::to_string(i);
          try {
            if (granted(driver->acquire(who.request()))) (void)driver->release(who.claim(), soon());
          } catch (const Error& error) {
            if (errors++ == 0) ADD_FAILURE() << error.what();
          }
        }
      });
    }
  }
  EXPECT_EQ(errors, 0);
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockDeadlock, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
