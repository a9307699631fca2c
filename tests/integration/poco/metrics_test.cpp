#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <gtest/gtest.h>

#include "curl.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/permit/semaphore.h"
#include "lockkeeper/poco/metrics_handler.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "prometheus_text.h"
#include "redis_server.h"
#include "redlock_uri.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class Greeter final : public Poco::Net::HTTPRequestHandler {
  void handleRequest(Poco::Net::HTTPServerRequest&, Poco::Net::HTTPServerResponse& response) override {
    response.sendBuffer("hello", 5);
  }
};

class Greeters final : public Poco::Net::HTTPRequestHandlerFactory {
  Poco::Net::HTTPRequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest&) override {
    return new Greeter;
  }
};

/// A real HTTP server with the metrics of this test.
class MetricsEndpoint : public ::testing::Test {
 protected:
  MetricsEndpoint() { server.start(); }
  ~MetricsEndpoint() override { server.stopAll(true); }

  CurlAnswer ask(const std::string& target, std::vector<std::string> arguments = {}) const {
    arguments.push_back("http://127.0.0.1:" + std::to_string(server.port()) + target);
    return curl(arguments);
  }
  double scrape(const std::string& name, PrometheusText::Labels labels) const {
    if (name.starts_with("lockkeeper_lock")) labels.emplace("lock", "mutex");
    return PrometheusText(ask("/metrics").body).value(name, labels);
  }

  std::shared_ptr<poco::Metrics> metrics = std::make_shared<poco::Metrics>();
  Poco::Net::HTTPServer server{poco::serveMetrics(metrics, std::make_unique<Greeters>()).release(),
                               Poco::Net::ServerSocket(Poco::Net::SocketAddress("127.0.0.1", 0)),
                               new Poco::Net::HTTPServerParams};
};

TEST_F(MetricsEndpoint, AnswersGetInPrometheussTextFormat) {
  metrics->listener("redis")->on({.kind = EventKind::renewed, .key = "order"});
  const CurlAnswer answer = ask("/metrics?debug=1");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const PrometheusText text(answer.body);
  EXPECT_EQ(text.value("lockkeeper_lock_renewals_total",
                       {{"driver", "redis"}, {"lock", "mutex"}, {"outcome", "renewed"}}),
            1);
}

TEST_F(MetricsEndpoint, AnswersHeadWithoutTheBody) {
  const CurlAnswer answer = ask("/metrics", {"--head"});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("content-length"), std::to_string(metrics->text().size()));
  EXPECT_EQ(answer.body, "");
}

TEST_F(MetricsEndpoint, RefusesToBeWritten) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    const CurlAnswer answer = ask("/metrics", {"--request", method, "--data-binary", "x=1"});
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_EQ(answer.header("allow"), "GET, HEAD");
  }
}

TEST_F(MetricsEndpoint, LeavesOtherPathsToTheApplication) {
  EXPECT_EQ(ask("/hello").body, "hello");
  EXPECT_EQ(ask("/metrics/").body, "hello");
}

TEST(MetricsAlone, AnswerNoOtherPath) {
  Poco::Net::HTTPServer server(poco::serveMetrics(std::make_shared<poco::Metrics>()).release(),
                               Poco::Net::ServerSocket(Poco::Net::SocketAddress("127.0.0.1", 0)),
                               new Poco::Net::HTTPServerParams);
  server.start();
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(curl({url + "/metrics"}).status, 200);
  EXPECT_EQ(curl({url + "/"}).status, 404);
  server.stopAll(true);
}

TEST_F(MetricsEndpoint, ShowWhatLocksAndLimitsOnRedisDo) {
  RedisServer redis;
  StoreRegistry stores;
  redis::use(stores);
  Environment environment;
  environment.listener = metrics->listener("redis");
  LockManager manager(stores.open(redis.uri(), environment), {.environment = environment});
  RateLimiter limiter(stores.openRates(redis.uri(), environment), {.environment = environment});

  auto held = manager.lock("order");
  EXPECT_FALSE(manager.tryLock("order"));
  EXPECT_EQ(scrape("lockkeeper_locks_held", {{"driver", "redis"}}), 1);
  {
    const Lock reader = manager.lockShared("price");
    const Lock another = manager.lockShared("price");
    Semaphore exports(manager, "export", 3);
    const Lock permits = exports.acquire(2);
    EXPECT_EQ(scrape("lockkeeper_locks_held", {{"driver", "redis"}, {"lock", "mutex"}}), 1);
    EXPECT_EQ(scrape("lockkeeper_locks_held", {{"driver", "redis"}, {"lock", "shared"}}), 2);
    EXPECT_EQ(scrape("lockkeeper_locks_held", {{"driver", "redis"}, {"lock", "semaphore"}}), 1);
  }
  EXPECT_EQ(held.release(), ReleaseResult::released);
  const RatePolicy once("sms", {.rate = Rate::parse("rate", "1/h")});
  EXPECT_TRUE(limiter.take("+49", once));
  EXPECT_FALSE(limiter.take("+49", once));
  redis.kill();
  EXPECT_THROW((void)manager.lock("order", {.waitFor = 0ms}), Error);

  const PrometheusText text(ask("/metrics").body);
  const auto value = [&](const std::string& name, PrometheusText::Labels labels) {
    labels["driver"] = "redis";
    if (name.starts_with("lock")) labels.emplace("lock", "mutex");
    return text.value("lockkeeper_" + name, labels);
  };
  EXPECT_EQ(value("lock_acquisitions_total", {{"outcome", "granted"}}), 1);
  EXPECT_EQ(value("lock_acquisitions_total", {{"outcome", "timeout"}}), 1);
  EXPECT_EQ(value("lock_acquisitions_total", {{"outcome", "failed"}}), 1);
  EXPECT_EQ(value("lock_hold_seconds_count", {}), 1);
  EXPECT_EQ(value("locks_held", {}), 0);
  EXPECT_GE(value("store_errors_total", {{"kind", "store_unavailable"}}) +
                value("store_errors_total", {{"kind", "outcome_unknown"}}),
            1);
  EXPECT_EQ(
      value("rate_decisions_total", {{"policy", "sms"}, {"result", "allowed"}, {"decided_by", "store"}}), 1);
  EXPECT_EQ(
      value("rate_decisions_total", {{"policy", "sms"}, {"result", "refused"}, {"decided_by", "store"}}), 1);
}

TEST_F(MetricsEndpoint, ShowALockThatWasLost) {
  RedisServer redis;
  StoreRegistry stores;
  redis::use(stores);
  Environment environment;
  environment.listener = metrics->listener("redis");
  LockManager manager(stores.open(redis.uri(), environment), {.environment = environment});
  const auto held = manager.lock("order", {.ttl = 1s});
  redis.command({"DEL", "order"});
  EXPECT_TRUE(waitUntil([&] {
    return scrape("lockkeeper_lock_losses_total", {{"driver", "redis"}, {"reason", "not_owner"}}) == 1;
  }));
  EXPECT_EQ(scrape("lockkeeper_locks_held", {{"driver", "redis"}}), 0);
  EXPECT_EQ(scrape("lockkeeper_lock_hold_seconds_count", {{"driver", "redis"}}), 0);
}

TEST_F(MetricsEndpoint, ShowWhichNodeOfAQuorumIsDown) {
  RedisServer nodes[3];
  StoreRegistry stores;
  redis::use(stores);
  Environment environment;
  environment.listener = metrics->listener("redlock");
  LockManager manager(stores.open(redlockUri(nodes, "restartGuard=off"), environment),
                      {.environment = environment});
  const auto up = [&](const RedisServer& node) {
    (void)manager.lock("order").release();
    return scrape("lockkeeper_node_up",
                  {{"driver", "redlock"}, {"node", "127.0.0.1:" + std::to_string(node.port())}}) == 1;
  };
  EXPECT_TRUE(waitUntil([&] { return up(nodes[0]) && up(nodes[1]) && up(nodes[2]); }));
  nodes[1].kill();
  EXPECT_TRUE(waitUntil([&] { return !up(nodes[1]); }));
  EXPECT_TRUE(waitUntil([&] { return up(nodes[0]) && up(nodes[2]); }));
}

}  // namespace
}  // namespace lockkeeper::test
