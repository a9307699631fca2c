#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>

#include "captured_log.h"
#include "limited_server.h"
#include "redis_server.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

std::string limitedBy(const std::string& outage) {
  return "lockkeeper.limits.perAddress.rate = 100/h\n"
         "lockkeeper.limits.perAddress.outage = " +
         outage +
         "\n"
         "lockkeeper.http.routes.all.match = * /*\n"
         "lockkeeper.http.routes.all.limits.perAddress = address\n";
}

TEST(RateLimitFilterOutage, AClosedLimitAnswersThatTheServiceIsDown) {
  RedisServer redis;
  std::atomic<int> outages = 0;
  const LimitedServer server(redis.uri(), limitedBy("closed"),
                             {.report = [&](const poco::RateLimitReport& report) {
                               if (report.decision.outage) ++outages;
                             }});
  EXPECT_EQ(server.get("/").status, 200);
  redis.kill();
  const CurlAnswer answer = server.get("/");
  EXPECT_EQ(answer.status, 503);
  EXPECT_GE(std::stoi(answer.header("retry-after")), 1);
  EXPECT_EQ(answer.header("content-type"), "application/problem+json");
  EXPECT_NE(answer.body.find("#temporary-reduced-capacity"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find(R"("violated-policies":["perAddress"])"), std::string::npos) << answer.body;
  EXPECT_EQ(answer.header("ratelimit"), "") << "nothing is known";
  EXPECT_EQ(server.served(), 1);
  EXPECT_GE(outages, 1);
  redis.restart();
  EXPECT_TRUE(waitUntil([&] { return server.get("/").status == 200; })) << "it opens by itself";
}

TEST(RateLimitFilterOutage, TheLogSaysWhyAStoreCannotBeAsked) {
  const CapturedLog log("lockkeeper.http");
  const RedisServer guarded({.password = "right"});
  const std::string uri = "redis://:wr0ng@127.0.0.1:" + std::to_string(guarded.port());
  const LimitedServer server(uri, limitedBy("closed"));
  EXPECT_EQ(server.get("/").status, 503);
  EXPECT_NE(log.text().find("route all: limit perAddress refuses without its store: "), std::string::npos)
      << log.text();
  EXPECT_NE(log.text().find("refused the user name or the password"), std::string::npos) << log.text();
  EXPECT_EQ(log.text().find("wr0ng"), std::string::npos) << log.text();
}

TEST(RateLimitFilterOutage, AnOpenLimitLetsRequestsPassAndReportsIt) {
  RedisServer redis;
  std::atomic<int> outages = 0;
  const LimitedServer server(redis.uri(), limitedBy("open"),
                             {.report = [&](const poco::RateLimitReport& report) {
                               if (report.decision.allowed && report.decision.outage) ++outages;
                             }});
  redis.kill();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(server.get("/").status, 200);
  EXPECT_EQ(outages, 3);
}

TEST(RateLimitFilterOutage, ALocalLimitGoesOnLimiting) {
  RedisServer redis;
  const LimitedServer server(redis.uri(), limitedBy("local\nlockkeeper.limits.perAddress.processes = 50"));
  redis.kill();
  EXPECT_EQ(server.get("/").status, 200);
  EXPECT_EQ(server.get("/").status, 200);
  const CurlAnswer refused = server.get("/");
  EXPECT_EQ(refused.status, 429) << "this process's part is used, which is not an outage to the client";
}

TEST(RateLimitFilterOutage, AStoreThatHangsDoesNotHangTheServer) {
  RedisServer redis;
  const LimitedServer server(redis.uri(), limitedBy("closed"));
  EXPECT_EQ(server.get("/").status, 200);
  redis.pause();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(server.get("/").status, 503);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{30});
  redis.resume();
  EXPECT_TRUE(waitUntil([&] { return server.get("/").status == 200; }));
}

}  // namespace
}  // namespace lockkeeper::test
