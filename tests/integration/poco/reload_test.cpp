#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "limited_server.h"
#include "lockkeeper/error.h"
#include "lockkeeper/poco/lock_services.h"
#include "process.h"
#include "temp_folder.h"

namespace lockkeeper::test {
namespace {

constexpr auto longEnough = std::chrono::seconds{60};

std::string settings(int perHour) {
  const std::string rate = std::to_string(perHour) + "/h\n";
  return "lockkeeper.limits.first.rate = " + rate + "lockkeeper.limits.second.rate = " + rate +
         "lockkeeper.http.routes.all.match = * /*\n"
         "lockkeeper.http.routes.all.limits.first = all\n"
         "lockkeeper.http.routes.all.limits.second = address\n";
}

std::string policy(int perHour) {
  const std::string values = ";q=" + std::to_string(perHour) + ";w=3600";
  return "\"first\"" + values + ", \"second\"" + values;
}

TEST(RateLimitFilterReload, UnderLoadEachRequestSeesOneConfigurationAsAWhole) {
  constexpr int clients = 4;
  constexpr int requests = 1500;
  LimitedServer server("memory:", settings(1'000'000));
  const TempFolder folder;
  std::vector<std::unique_ptr<Process>> running;
  for (int i = 0; i < clients; ++i) {
    running.push_back(std::make_unique<Process>(
        std::vector<std::string>{"curl", "--silent", "--show-error", "--output", "/dev/null", "--write-out",
                                 "%{http_code} %header{ratelimit-policy}\\n",
                                 server.url("/[1-" + std::to_string(requests) + "]")},
        ProcessOptions{.standardOutput = folder / std::to_string(i)}));
  }
  int reloads = 0;
  const auto anyRuns = [&] {
    return std::ranges::any_of(running, [](const auto& process) { return process->running(); });
  };
  while (anyRuns()) {
    ++reloads;
    server.filter().reload(limitOptions(settings(reloads % 2 == 0 ? 1'000'000 : 2'000'000)));
    EXPECT_THROW(server.filter().reload({.routes = {{.name = "a", .match = "wrong"}}}),
                 std::invalid_argument);
  }
  int before = 0;
  int after = 0;
  for (int i = 0; i < clients; ++i) {
    EXPECT_EQ(running[static_cast<std::size_t>(i)]->waitFor(longEnough), 0);
    std::istringstream lines(readFile(folder / std::to_string(i)));
    for (std::string line; std::getline(lines, line);) {
      if (line == "200 " + policy(1'000'000)) {
        ++before;
      } else if (line == "200 " + policy(2'000'000)) {
        ++after;
      } else {
        ADD_FAILURE() << line;
      }
    }
  }
  EXPECT_EQ(before + after, clients * requests);
  EXPECT_GT(before, 0);
  EXPECT_GT(after, 0);
}

TEST(RateLimitFilterReload, TheFilterFollowsTheServices) {
  const auto read = [](const std::string& text) { return poco::readSettings(*properties(text)); };
  poco::LockServices services(read("lockkeeper.store = memory:\n" + settings(10)), StoreRegistry());
  LimitedServer server("memory:", settings(10));
  services.follow(server.filter());
  const poco::LivePolicy first = services.livePolicy("first");
  services.reload(read(settings(20)));
  EXPECT_EQ(server.get("/").header("ratelimit-policy"), policy(20));
  EXPECT_EQ(first.now().limit(), 20);
  EXPECT_THROW(services.reload(read(settings(30) + "lockkeeper.http.maxBody = 0\n")), ConfigError);
  EXPECT_THROW(services.reload(read(settings(30) + "lockkeeper.tasks.t.ttl = 25h\n")), ConfigError);
  EXPECT_EQ(server.get("/").header("ratelimit-policy"), policy(20));
  EXPECT_EQ(first.now().limit(), 20);
}

TEST(RateLimitFilterReload, ARequestOnItsWayKeepsTheOldConfiguration) {
  std::promise<void> arrived;
  std::promise<void> goOn;
  const std::shared_future<void> released = goOn.get_future();
  LimitedServer server("memory:", settings(10), {}, [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    arrived.set_value();
    released.wait();
  });
  const TempFolder folder;
  Process client({"curl", "--silent", "--include", server.url("/")}, {.standardOutput = folder / "answer"});
  ASSERT_EQ(arrived.get_future().wait_for(longEnough), std::future_status::ready);
  server.filter().reload(limitOptions(settings(20)));
  EXPECT_EQ(server.get("/").header("ratelimit-policy"), policy(20));
  goOn.set_value();
  EXPECT_EQ(client.waitFor(longEnough), 0);
  EXPECT_NE(readFile(folder / "answer").find("RateLimit-Policy: " + policy(10)), std::string::npos)
      << readFile(folder / "answer");
}

TEST(RateLimitFilterReload, WhatIsUsedStaysUsed) {
  LimitedServer server("memory:", settings(2));
  EXPECT_EQ(server.get("/").status, 200);
  EXPECT_EQ(server.get("/").status, 200);
  EXPECT_EQ(server.get("/").status, 429);
  server.filter().reload(limitOptions(settings(2) + "lockkeeper.http.maxBody = 1000\n"));
  EXPECT_EQ(server.get("/").status, 429);
}

TEST(RateLimitFilterReload, HooksStay) {
  std::atomic<int> refused = 0;
  LimitedServer server("memory:", settings(1), {.report = [&](const poco::RateLimitReport&) { ++refused; }});
  server.filter().reload(limitOptions(settings(2)));
  EXPECT_EQ(server.get("/").status, 200);
  EXPECT_EQ(server.get("/").status, 200);
  EXPECT_EQ(server.get("/").status, 429);
  EXPECT_EQ(refused, 1);
}

TEST(RateLimitFilterReload, WhatIsWrongLeavesTheOldConfiguration) {
  LimitedServer server("memory:", settings(10));
  EXPECT_THROW(limitOptions(settings(20) + "lockkeeper.http.maxBody = 0\n"), ConfigError);
  poco::RateLimitOptions options = limitOptions(settings(20));
  options.maxBody = 0;
  EXPECT_THROW(server.filter().reload(options), std::invalid_argument);
  EXPECT_EQ(server.get("/").header("ratelimit-policy"), policy(10));
}

}  // namespace
}  // namespace lockkeeper::test
