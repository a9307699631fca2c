#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <vector>

#include "app_server.h"
#include "captured_log.h"
#include "decorators.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/poco/health_handler.h"
#include "lockkeeper/testing/fake_clock.h"
#include "redis_server.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using testing::FakeClock;

/// A store in memory that counts probes, may hold them up, and may refuse renewals.
class ProbedDriver final : public PlainDecorator {
 public:
  explicit ProbedDriver(std::shared_ptr<Clock> clock)
      : PlainDecorator(std::make_shared<MemoryDriver>(std::move(clock))) {}

  void renew(std::span<Renewal> renewals, Instant deadline) override {
    if (!deaf) return inner_->renew(renewals, deadline);
    for (Renewal& each : renewals) each.outcome = RenewOutcome::unavailable;
  }
  std::optional<Holder> holder(std::string_view key, Instant deadline) override {
    ++probes;
    mayAnswer.wait(false);
    return inner_->holder(key, deadline);
  }

  std::atomic<int> probes = 0;
  std::atomic<bool> mayAnswer = true;
  std::atomic<bool> deaf = false;
};

/// Limits that count probes.
class ProbedRates final : public RateDriver {
 public:
  void take(std::span<RateCharge> charges, Instant deadline) override { inner_.take(charges, deadline); }
  void peek(std::span<RateCharge> charges, Instant deadline) override {
    ++probes;
    inner_.peek(charges, deadline);
  }
  bool refund(const RateRefund& refund, Instant deadline) override { return inner_.refund(refund, deadline); }
  void reset(std::string_view key, RateKind kind, Instant deadline) override {
    inner_.reset(key, kind, deadline);
  }
  std::string name() const override { return inner_.name(); }

  std::atomic<int> probes = 0;

 private:
  MemoryDriver inner_;
};

void nothing(HTTPServerRequest&, HTTPServerResponse& response) { reply(response, 200, "the application"); }

class HealthTest : public ::testing::Test {
 protected:
  static std::function<Factory(Factory)> healthOf(poco::HealthParts parts) {
    return [parts = std::move(parts)](Factory handlers) {
      return poco::serveHealth(parts, std::move(handlers));
    };
  }

  std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
  std::shared_ptr<ProbedDriver> driver = std::make_shared<ProbedDriver>(clock);
  std::shared_ptr<LockManager> manager =
      std::make_shared<LockManager>(driver, ManagerOptions{.environment = {.clock = clock}});
};

TEST_F(HealthTest, ReadyFollowsTheStoreAndLiveDoesNot) {
  const CapturedLog log("lockkeeper.health");
  RedisServer redis;
  const AppServer server(healthOf({.locks = managerOn(redis.uri()), .answers = valuesOn(redis.uri())}),
                         nothing);
  const CurlAnswer ready = server.ask("/health/ready?verbose");
  EXPECT_EQ(ready.status, 200);
  EXPECT_EQ(ready.header("content-type"), "application/json");
  EXPECT_EQ(ready.header("cache-control"), "no-store");
  EXPECT_EQ(ready.body, R"({"status":"ready","parts":{"locks":"up","answers":"up"},"suspectLocks":0})");
  EXPECT_EQ(server.ask("/orders/7").body, "the application");
  EXPECT_EQ(server.put("/health/ready").status, 405);

  redis.kill();
  CurlAnswer down;
  ASSERT_TRUE(waitUntil([&] { return (down = server.ask("/health/ready")).status == 503; }));
  EXPECT_EQ(down.body,
            R"({"status":"not ready","parts":{"locks":"down","answers":"down"},"suspectLocks":0})");
  EXPECT_EQ(server.ask("/health/live").body, R"({"status":"live"})");
  EXPECT_EQ(server.ask("/health/live").status, 200);

  redis.restart();
  EXPECT_TRUE(waitUntil([&] { return server.ask("/health/ready").status == 200; }));
  const std::string lines = log.text();
  EXPECT_NE(lines.find("locks are down: "), std::string::npos) << lines;
  EXPECT_NE(lines.find("locks are up again"), std::string::npos) << lines;
}

TEST_F(HealthTest, AllCallersShareAProbeThatCountsForASecond) {
  const AppServer server(healthOf({.locks = manager}), nothing);
  driver->mayAnswer = false;
  constexpr int callers = 12;
  std::vector<std::future<int>> answers;
  for (int i = 0; i < callers; ++i) {
    answers.push_back(std::async(std::launch::async, [&] { return server.ask("/health/ready").status; }));
  }
  EXPECT_TRUE(waitUntil([&] { return server.connections() == callers; }));
  driver->mayAnswer = true;
  driver->mayAnswer.notify_all();
  for (auto& answer : answers) EXPECT_EQ(answer.get(), 200);
  EXPECT_EQ(driver->probes, 1);

  clock->advance(999ms);
  EXPECT_EQ(server.ask("/health/ready").status, 200);
  EXPECT_EQ(driver->probes, 1);
  clock->advance(1ms);
  EXPECT_EQ(server.ask("/health/ready").status, 200);
  EXPECT_EQ(driver->probes, 2);
}

TEST_F(HealthTest, APartThatHangsDoesNotHoldUpTheOthers) {
  const auto rates = std::make_shared<ProbedRates>();
  const AppServer server(healthOf({.locks = manager, .limits = std::make_shared<RateLimiter>(rates)}),
                         nothing);
  driver->mayAnswer = false;
  auto answer = std::async(std::launch::async, [&] { return server.ask("/health/ready").status; });
  EXPECT_TRUE(waitUntil([&] { return driver->probes == 1 && rates->probes == 1; }));
  driver->mayAnswer = true;
  driver->mayAnswer.notify_all();
  EXPECT_EQ(answer.get(), 200);
}

TEST_F(HealthTest, IsNotReadyWhileARenewalHasFailed) {
  const AppServer server(healthOf({.locks = manager}), nothing);
  const auto held = manager->lock("order", {.ttl = 30s});
  EXPECT_EQ(server.ask("/health/ready").status, 200);
  driver->deaf = true;
  CurlAnswer answer;
  ASSERT_TRUE(waitUntil([&] {
    if (manager->suspectLocks() == 0) clock->advance(100ms);
    return manager->suspectLocks() == 1;
  }));
  clock->advance(1s);
  answer = server.ask("/health/ready");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, R"({"status":"not ready","parts":{"locks":"up"},"suspectLocks":1})");
  driver->deaf = false;
  EXPECT_TRUE(waitUntil([&] {
    clock->advance(500ms);
    return server.ask("/health/ready").status == 200;
  }));
  EXPECT_TRUE(held.valid());
}

TEST_F(HealthTest, NeedsAPartToAskAndTwoPaths) {
  EXPECT_THROW((void)poco::serveHealth({}), std::invalid_argument);
  EXPECT_THROW((void)poco::serveHealth({.locks = manager}, nullptr, {.live = "/x", .ready = "/x"}),
               std::invalid_argument);
}

}  // namespace
}  // namespace lockkeeper::test
