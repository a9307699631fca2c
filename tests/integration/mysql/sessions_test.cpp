// How many sessions each user of a server opens, and when they are closed, as docs/drivers/mysql.md says.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/server_rows.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/store_registry.h"
#include "version/version_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// What is asked for `key`, and how many sessions may come of it.
struct User {
  std::function<void(const std::string& key)> call;
  int oneCaller;
  int most;
};

class SessionsTest : public ::testing::TestWithParam<Brand> {
 protected:
  std::shared_ptr<LockDriver> open(const std::string& scheme) {
    StoreRegistry registry;
    mysql::use(registry);
    return registry.open(scheme + "://" + login + "?createTable=true");
  }

  static User locksOf(std::shared_ptr<LockDriver> driver, int most) {
    auto locks = std::make_shared<LockManager>(std::move(driver));
    return {[locks](const std::string& key) { (void)locks->lock(key, {.waitFor = 20s}); }, 1, most};
  }

  static User limitsOf(std::shared_ptr<LockDriver> driver) {
    auto limiter = std::make_shared<RateLimiter>(capability<RateDriver>(std::exchange(driver, nullptr)),
                                                 RateLimiterOptions{.operationTimeout = 20s});
    const RatePolicy policy("p", {.rate = {1'000'000, 1s}, .burst = 1000});
    return {[limiter, policy](const std::string& key) { (void)limiter->take(key, policy); }, 1, 8 + 1};
  }

  User transactions() {
    auto rows = std::make_shared<mysql::ServerRows>(StoreUri::parse("mysql://" + login),
                                                    mysql::ServerRowsOptions{.operationTimeout = 20s});
    const auto call = [rows](const std::string&) {
      auto transaction = rows->begin();
      (void)transaction.select("SELECT 1", {});
      transaction.commit();
    };
    return {call, 1, 8};
  }

  /// One caller after the other, and then many at once.
  void expectSessions(User user) {
    for (int time = 0; time < 3; ++time) user.call("one");
    EXPECT_EQ(server.sessions(), user.oneCaller);
    {
      std::vector<std::jthread> callers;
      for (int caller = 0; caller < 48; ++caller) {
        callers.emplace_back([&, caller] {
          for (int time = 0; time < 10; ++time) user.call("key" + std::to_string(caller));
        });
      }
    }
    EXPECT_GT(server.sessions(), user.oneCaller);
    EXPECT_LE(server.sessions(), user.most);
    user.call = nullptr;
    EXPECT_TRUE(waitUntil([&] { return server.sessions() == 0; })) << "they are closed with their user";
  }

  DatabaseServer& server = serverOf(GetParam());
  const std::string login = server.uri(server.newDatabase()).substr(std::string("mysql://").size());
};

TEST_P(SessionsTest, OfVersionRows) { expectSessions(locksOf(open("mysql+version"), 8 + 1)); }

TEST_P(SessionsTest, OfNamedLocks) { expectSessions(locksOf(open("mysql+getlock"), 16 + 4)); }

TEST_P(SessionsTest, OfLimits) { expectSessions(limitsOf(open("mysql+version"))); }

TEST_P(SessionsTest, OfTransactions) { expectSessions(transactions()); }

INSTANTIATE_TEST_SUITE_P(All, SessionsTest, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
