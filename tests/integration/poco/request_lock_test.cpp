#include <Poco/Exception.h>
#include <Poco/Logger.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "app_server.h"
#include "captured_log.h"
#include "decorators.h"
#include "lockkeeper/error.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/poco/logging_listener.h"
#include "lockkeeper/poco/request_locks.h"
#include "lockkeeper/testing/fake_clock.h"
#include "redis_server.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using poco::RequestLockFault;

/// What was reported.
class Faults {
 public:
  std::function<void(const poco::RequestLockReport&)> hook() {
    return [this](const poco::RequestLockReport& report) {
      const std::lock_guard held(mutex_);
      seen_.push_back(report.fault);
    };
  }
  std::vector<RequestLockFault> seen() const {
    const std::lock_guard held(mutex_);
    return seen_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<RequestLockFault> seen_;
};

class RequestLockTest : public ::testing::Test {
 protected:
  std::function<Factory(Factory)> locked(LockOptions lock = {}) { return locked(lock, redis.uri()); }
  std::function<Factory(Factory)> locked(LockOptions lock, const std::string& store) {
    return [this, lock, store](Factory handlers) {
      const poco::LockedRoute route{
          .name = "order", .match = "PUT /orders/{id}", .by = "path id", .lock = lock};
      return poco::RequestLocks(managerOn(store), {.routes = {route}, .report = faults.hook()})
          .wrap(std::move(handlers));
    };
  }
  bool isFree(const std::string& key) const { return redis.command({"EXISTS", key}) == "0"; }

  RedisServer redis;
  Faults faults;
};

/// Something that handlers wait for.
class Gate {
 public:
  ~Gate() { open(); }
  void wait() { opened_.wait(); }
  void open() {
    if (!isOpen_.exchange(true)) promise_.set_value();
  }

 private:
  std::atomic<bool> isOpen_ = false;
  std::promise<void> promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
};

TEST_F(RequestLockTest, RequestsForOneKeyAreServedOneAtATimeOverAllServers) {
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::atomic<int> served = 0;
  const Serve serve = [&](HTTPServerRequest&, HTTPServerResponse& response) {
    const int now = ++inside;
    if (now > most) most = now;
    std::this_thread::yield();
    ++served;
    --inside;
    reply(response, 200, "done");
  };
  AppServer one(locked({.waitFor = 30s}), serve);
  AppServer two(locked({.waitFor = 30s}), serve);
  std::vector<std::future<int>> answers;
  for (int i = 0; i < 12; ++i) {
    answers.push_back(
        std::async(std::launch::async, [&, i] { return (i % 2 ? one : two).put("/orders/7").status; }));
  }
  for (auto& answer : answers) EXPECT_EQ(answer.get(), 200);
  EXPECT_EQ(served, 12);
  EXPECT_EQ(most, 1);
  EXPECT_TRUE(isFree("order/7"));
}

TEST_F(RequestLockTest, ABusyKeyIsRefusedForAMomentHoweverLongTheLeaseIs) {
  Gate gate;
  std::atomic<int> served = 0;
  AppServer server(locked({.ttl = 60s, .renew = Renew::manual}),
                   [&](HTTPServerRequest&, HTTPServerResponse& response) {
                     if (++served == 1) gate.wait();
                     reply(response, 200, "done");
                   });
  auto first = std::async(std::launch::async, [&] { return server.put("/orders/7"); });
  ASSERT_TRUE(waitUntil([&] { return served == 1; }));
  const CurlAnswer busy = server.put("/orders/7");
  EXPECT_EQ(busy.status, 423);
  EXPECT_EQ(busy.header("retry-after"), "1") << "not the lease of 60 s: locks end with their requests";
  EXPECT_EQ(busy.header("content-type"), "application/problem+json");
  EXPECT_NE(busy.body.find(R"("status":423)"), std::string::npos) << busy.body;

  EXPECT_EQ(server.put("/orders/8").status, 200) << "another key";
  EXPECT_EQ(server.ask("/orders/7").status, 200) << "a GET has no route";
  gate.open();
  EXPECT_EQ(first.get().status, 200);
  EXPECT_EQ(server.put("/orders/7").status, 200);
  EXPECT_EQ(server.put("/%6frders/%37/").status, 200) << "no spelling gets round the lock";
  EXPECT_EQ(faults.seen(), std::vector{RequestLockFault::busy});
}

TEST_F(RequestLockTest, RetryAfterIsHowLongTheRoutesRequestsHoldTheirLocks) {
  const auto clock = std::make_shared<testing::FakeClock>();
  const auto manager = std::make_shared<LockManager>(std::make_shared<MemoryDriver>(clock),
                                                     ManagerOptions{.environment = {.clock = clock}});
  const auto wrap = [&](Factory handlers) {
    poco::RequestLockOptions options;
    for (const std::string name : {"order", "item"}) {
      options.routes.push_back({.name = name, .match = "PUT /" + name + "/{id}", .by = "path id"});
      options.routes.back().lock = {.ttl = 10min, .renew = Renew::manual};
    }
    return poco::RequestLocks(manager, std::move(options)).wrap(std::move(handlers));
  };
  std::atomic<std::chrono::milliseconds> takes{6500ms};
  AppServer server(wrap, [&](HTTPServerRequest&, HTTPServerResponse& response) {
    clock->advance(takes.load());
    reply(response, 200, "done");
  });
  EXPECT_EQ(server.put("/order/1").status, 200);
  takes = 5min;
  EXPECT_EQ(server.put("/item/1").status, 200);
  const auto order = manager->lock("order/7");
  const auto item = manager->lock("item/7");
  const CurlAnswer busy = server.put("/order/7");
  EXPECT_EQ(busy.status, 423);
  EXPECT_EQ(busy.header("retry-after"), "7");
  EXPECT_NE(busy.body.find("Try again in 7 s."), std::string::npos) << busy.body;
  EXPECT_EQ(server.put("/item/7").header("retry-after"), "60") << "not longer than a minute";
}

TEST_F(RequestLockTest, WaitingRequestsNeverTakeAllThreadsOfTheServer) {
  const auto manager = managerOn(redis.uri());
  struct Case {
    std::optional<std::size_t> set;
    int waiters;
  };
  for (const Case& each : {Case{{}, 2}, Case{100, 3}}) {
    std::atomic<int> served = 0;
    poco::RequestLockOptions options{
        .routes = {{.name = "order", .match = "PUT /orders/{id}", .by = "path id", .lock = {.waitFor = 30s}}},
        .maxWaiting = each.set};
    poco::RequestLocks locks(manager, options);
    AppServer server([&](Factory handlers) { return locks.wrap(std::move(handlers)); },
                     [&](HTTPServerRequest&, HTTPServerResponse& response) {
                       ++served;
                       reply(response, 200, "done");
                     },
                     4);
    auto held = manager->lock("order/7");
    std::vector<std::future<int>> answers;
    for (int i = 0; i <= each.waiters; ++i) {
      answers.push_back(std::async(std::launch::async, [&] { return server.put("/orders/7").status; }));
    }
    const auto answered = [](const std::future<int>& answer) {
      return answer.wait_for(0s) == std::future_status::ready;
    };
    EXPECT_TRUE(waitUntil([&] { return std::ranges::any_of(answers, answered); })) << "one does not wait";
    EXPECT_EQ(server.ask("/orders/7").status, 200) << "a GET finds a thread";
    EXPECT_EQ(served, 1);
    held.release();
    std::multiset<int> statuses;
    for (auto& answer : answers) statuses.insert(answer.get());
    EXPECT_EQ(statuses.count(423), 1U);
    EXPECT_EQ(statuses.count(200), static_cast<std::size_t>(each.waiters));
  }
}

TEST_F(RequestLockTest, ALogLineHasTheTraceOfItsRequest) {
  const CapturedLog log("lockkeeper.http");
  Poco::Logger::get("lockkeeper.http").setLevel("debug");
  const auto manager = managerOn(redis.uri());
  poco::RequestLocks locks(manager,
                           {.routes = {{.name = "order", .match = "PUT /orders/{id}", .by = "path id"}}});
  AppServer server([&](Factory handlers) { return locks.wrap(std::move(handlers)); },
                   [](HTTPServerRequest&, HTTPServerResponse& response) { reply(response, 200, "done"); });
  const auto held = manager->lock("order/7");
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  for (const std::string& sent :
       {"00-" + trace + "-00f067aa0ba902b7-01", "cc-" + trace + "-00f067aa0ba902b7-01-more"}) {
    (void)server.ask("/orders/7", {"-X", "PUT", "-H", "traceparent: " + sent});
  }
  EXPECT_EQ(log.text(), "route order: order/7 is busy, trace " + trace + "\n" +
                            "route order: order/7 is busy, trace " + trace + "\n");
  for (const std::string& wrong :
       {std::string("x"), "00-" + trace + "-00f067aa0ba902b7-01-more", "ff-" + trace + "-00f067aa0ba902b7-01",
        "00-" + trace + "-00f067aa0ba902b7-0G", "00-" + std::string(32, '0') + "-00f067aa0ba902b7-01"}) {
    (void)server.ask("/orders/7", {"-X", "PUT", "-H", "traceparent: " + wrong});
  }
  EXPECT_EQ(log.text().find("trace", log.text().rfind(trace)), std::string::npos) << log.text();
}

TEST_F(RequestLockTest, TheLinesOfAListenerHaveTheTraceOfTheRequestThatTookTheLock) {
  const CapturedLog log("locks.traced");
  Poco::Logger& logger = Poco::Logger::get("locks.traced");
  logger.setLevel("debug");
  Environment heard;
  heard.listener = std::make_shared<poco::LoggingListener>(logger);
  const auto manager =
      std::make_shared<LockManager>(std::make_shared<MemoryDriver>(), ManagerOptions{.environment = heard});
  poco::RequestLocks locks(manager,
                           {.routes = {{.name = "order", .match = "PUT /orders/{id}", .by = "path id"}}});
  AppServer server([&](Factory handlers) { return locks.wrap(std::move(handlers)); },
                   [&](HTTPServerRequest&, HTTPServerResponse& response) {
                     EXPECT_FALSE(manager->tryLock("order/7"));
                     reply(response, 200, "done");
                   });
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  (void)server.ask("/orders/7", {"-X", "PUT", "-H", "traceparent: 00-" + trace + "-00f067aa0ba902b7-01"});
  (void)server.ask("/orders/7", {"-X", "PUT"});
  std::istringstream lines(log.text());
  std::vector<bool> traced;
  for (std::string line; std::getline(lines, line);) traced.push_back(line.ends_with(", trace " + trace));
  EXPECT_EQ(traced, (std::vector<bool>{true, true, true, false, false, false})) << log.text();
}

TEST_F(RequestLockTest, AStoreThatIsDownIsNoBusyKey) {
  std::atomic<int> served = 0;
  AppServer server(locked(), [&](HTTPServerRequest&, HTTPServerResponse& response) {
    ++served;
    reply(response, 200, "");
  });
  redis.kill();
  const CurlAnswer answer = server.put("/orders/7");
  EXPECT_EQ(answer.status, 503);
  EXPECT_GE(std::stoi(answer.header("retry-after")), 1);
  EXPECT_EQ(answer.header("content-type"), "application/problem+json");
  EXPECT_EQ(served, 0);
  EXPECT_EQ(faults.seen(), std::vector{RequestLockFault::storeDown});
}

TEST_F(RequestLockTest, AStoreThatCannotGiveTheTtlServesNoRequest) {
  std::atomic<int> served = 0;
  const std::string shortLeases = "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3?restartGuard=1s";
  AppServer server(locked({.ttl = 2s}, shortLeases), [&](HTTPServerRequest&, HTTPServerResponse& response) {
    ++served;
    reply(response, 200, "");
  });
  EXPECT_EQ(server.put("/orders/7").status, 503);
  EXPECT_EQ(served, 0);
  EXPECT_EQ(faults.seen(), std::vector{RequestLockFault::storeDown});
}

TEST_F(RequestLockTest, AHandlerThatThrowsGivesTheLockBack) {
  AppServer server(locked(), [&](HTTPServerRequest& request, HTTPServerResponse& response) {
    const std::string how = request.get("X-How");
    response.setChunkedTransferEncoding(true);
    response.set("X-Half", "done");
    if (how == "standard") throw std::runtime_error("a secret");
    if (how == "poco") throw Poco::IOException("a secret");
    if (how == "number") throw 7;
    if (how == "lost") throw LockLost("a secret");
    reply(response, 200, "sent");
    throw std::runtime_error("too late");
  });
  for (const std::string how : {"standard", "poco", "number", "lost"}) {
    const CurlAnswer answer = server.ask("/orders/7", {"-X", "PUT", "-H", "X-How: " + how});
    EXPECT_EQ(answer.status, how == "lost" ? 503 : 500) << how;
    EXPECT_EQ(answer.body.find("secret"), std::string::npos) << answer.body;
    EXPECT_EQ(answer.header("x-half"), "");
    EXPECT_EQ(answer.header("retry-after"), how == "lost" ? "1" : "");
    EXPECT_TRUE(isFree("order/7")) << how;
  }
  const CurlAnswer late = server.ask("/orders/7", {"-X", "PUT", "-H", "X-How: late"});
  EXPECT_EQ(late.status, 200);
  EXPECT_EQ(late.body, "sent");
  EXPECT_TRUE(waitUntil([&] { return isFree("order/7"); }));
}

TEST_F(RequestLockTest, AHandlerReachesItsLock) {
  std::mutex mutex;
  std::vector<Fence> fences;
  AppServer server(locked(), [&](HTTPServerRequest&, HTTPServerResponse& response) {
    const Lock* lock = poco::currentLock();
    if (lock == nullptr) return reply(response, 200, "none");
    const std::lock_guard guard(mutex);
    fences.push_back(lock->fence().value());
    reply(response, 200, std::string(lock->key()) + (lock->valid() ? " held" : " lost"));
  });
  EXPECT_EQ(server.put("/orders/7").body, "order/7 held");
  EXPECT_EQ(server.put("/orders/7").body, "order/7 held");
  EXPECT_EQ(server.ask("/orders/7").body, "none") << "not under a lock";
  const std::lock_guard guard(mutex);
  ASSERT_EQ(fences.size(), 2U);
  EXPECT_LT(fences[0], fences[1]);
}

TEST_F(RequestLockTest, AHandlerSeesTheLossOfItsLockAndAnswersItself) {
  AppServer server(locked({.ttl = 300ms}), [&](HTTPServerRequest&, HTTPServerResponse& response) {
    redis.command({"SET", "order/7", "thief"});
    const bool lost = waitUntil([] { return !poco::currentLock()->valid(); });
    reply(response, 200, lost ? "lost" : "held");
  });
  EXPECT_EQ(server.put("/orders/7").body, "lost");
  EXPECT_TRUE(waitUntil([&] { return faults.seen() == std::vector{RequestLockFault::lost}; }));
  EXPECT_EQ(redis.command({"GET", "order/7"}), "thief") << "what is another's is not released";
}

TEST_F(RequestLockTest, AClientThatHangsUpEndsItsWait) {
  std::atomic<int> served = 0;
  AppServer server(locked({.waitFor = 10min}), [&](HTTPServerRequest&, HTTPServerResponse& response) {
    ++served;
    reply(response, 200, "");
  });
  const auto manager = managerOn(redis.uri());
  std::optional<Lock> holder = manager->lock("order/7");
  std::vector<Poco::Net::StreamSocket> waiting;
  for (int i = 0; i < 4; ++i)
    waiting.push_back(server.send("PUT /orders/7 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
  auto patient = std::async(std::launch::async, [&] { return server.put("/orders/7").status; });
  ASSERT_TRUE(waitUntil([&] { return server.connections() == 5; }));
  waiting[3].close();
  EXPECT_TRUE(waitUntil([&] { return server.connections() == 4; }));
  EXPECT_EQ(faults.seen(), std::vector{RequestLockFault::hungUp});
  waiting.pop_back();
  for (auto& other : waiting)
    EXPECT_FALSE(other.poll({}, Poco::Net::Socket::SELECT_READ)) << "it still waits";
  waiting[2].setLinger(true, 0);
  waiting[2].close();  // a reset
  waiting[1].close();
  waiting[0].shutdownSend();
  EXPECT_TRUE(waitUntil([&] { return faults.seen() == std::vector(4, RequestLockFault::hungUp); }));
  EXPECT_TRUE(waitUntil([&] { return server.connections() == 1; })) << "their threads are free";
  EXPECT_EQ(served, 0);
  holder.reset();
  EXPECT_EQ(patient.get(), 200);
  EXPECT_EQ(served, 1);
}

TEST_F(RequestLockTest, AClientThatReadsNothingDoesNotKeepTheLock) {
  std::atomic<int> served = 0;
  const std::string more(32U << 20, 'b');  // than the system takes for a client
  const auto serve = [&](HTTPServerRequest&, HTTPServerResponse& response) {
    reply(response, 200, ++served == 1 ? more : "free");
  };
  AppServer server(locked(), serve, 32, 3s);
  const auto client = server.send("PUT /orders/7 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(waitUntil([&] { return served == 1; }));
  EXPECT_TRUE(waitUntil([&] {
    try {
      return server.put("/orders/7").body == "free";
    } catch (const std::runtime_error&) {  // it has sent nothing for as long as the server waits
      return false;
    }
  }));
  EXPECT_TRUE(waitUntil([&] { return server.connections() == 0; })) << "its thread is free";
}

TEST_F(RequestLockTest, WhileMoreRequestsWaitThanThereAreThreadsOthersAreServed) {
  AppServer server(locked({.waitFor = 10min}),
                   [&](HTTPServerRequest&, HTTPServerResponse& response) { reply(response, 200, "free"); });
  std::optional<Lock> holder = managerOn(redis.uri())->lock("order/7");
  std::vector<Poco::Net::StreamSocket> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(
        server.send("PUT /orders/7 HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
  }
  EXPECT_EQ(server.ask("/metrics", {"--max-time", "20"}).body, "free");
  EXPECT_TRUE(waitUntil([&] { return faults.seen() == std::vector(24, RequestLockFault::busy); }))
      << "16 wait, half of the threads; the others are told at once";
  EXPECT_EQ(server.put("/orders/8").status, 200) << "a free key needs no wait";
  holder.reset();
  int served = 0;
  for (auto& client : clients) {
    char part[12];
    if (client.receiveBytes(part, sizeof part) == sizeof part)
      served += std::string(part, 12) == "HTTP/1.1 200";
  }
  EXPECT_EQ(served, 16);
}

/// A store in memory that keeps those who ask for the key order/slow waiting.
class SlowDriver final : public PlainDecorator {
 public:
  explicit SlowDriver(Gate& gate) : PlainDecorator(std::make_shared<MemoryDriver>()), gate_(gate) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    {
      const std::lock_guard held(mutex_);
      ++asked_[std::string(request.claim.key)];
    }
    if (request.claim.key == "order/slow") gate_.wait();
    return inner_->acquire(request);
  }

  /// How often the key was asked for.
  int asked(const std::string& key) {
    const std::lock_guard held(mutex_);
    return asked_[key];
  }

 private:
  Gate& gate_;
  std::mutex mutex_;
  std::map<std::string, int> asked_;
};

TEST_F(RequestLockTest, ARequestThatMayNotWaitDoesNotCountAsWaiting) {
  Gate gate;
  const auto driver = std::make_shared<SlowDriver>(gate);
  const auto manager = std::make_shared<LockManager>(driver);
  const auto wrap = [&](Factory handlers) {
    return poco::RequestLocks(manager, {.routes = {{.name = "order",
                                                    .match = "PUT /orders/{id}",
                                                    .by = "path id",
                                                    .lock = {.waitFor = 30s}}},
                                        .maxWaiting = 1,
                                        .report = faults.hook()})
        .wrap(std::move(handlers));
  };
  AppServer server(wrap, [](HTTPServerRequest&, HTTPServerResponse& response) { reply(response, 200, ""); });
  const auto put = [&](const std::string& id) {
    return std::async(std::launch::async, [&server, id] { return server.put("/orders/" + id).status; });
  };
  LockManager others(driver);
  Lock seven = others.lock("order/7");
  Lock eight = others.lock("order/8");
  auto waiting = put("7");
  ASSERT_TRUE(waitUntil([&] { return driver->asked("order/7") > 1; }));
  EXPECT_EQ(server.put("/orders/8").status, 423) << "one waits already";
  auto slow = put("slow");
  ASSERT_TRUE(waitUntil([&] { return driver->asked("order/slow") > 0; }));
  seven.release();
  EXPECT_EQ(waiting.get(), 200);
  auto next = put("8");
  ASSERT_TRUE(waitUntil([&] { return driver->asked("order/8") > 2; }));
  eight.release();
  EXPECT_EQ(next.get(), 200);
  gate.open();
  EXPECT_EQ(slow.get(), 200);
}

TEST_F(RequestLockTest, TheLogSaysWhyAStoreCannotBeAsked) {
  const CapturedLog log("lockkeeper.http");
  const RedisServer guarded({.password = "right"});
  const auto wrap = [&](Factory handlers) {
    const std::string uri = "redis://:wr0ng@127.0.0.1:" + std::to_string(guarded.port());
    return poco::RequestLocks(managerOn(uri),
                              {.routes = {{.name = "order", .match = "PUT /orders/{id}", .by = "path id"}}})
        .wrap(std::move(handlers));
  };
  AppServer server(wrap, [&](HTTPServerRequest&, HTTPServerResponse& response) { reply(response, 200, ""); });
  EXPECT_EQ(server.put("/orders/7").status, 503);
  EXPECT_NE(log.text().find("route order: order/7 cannot be locked: "), std::string::npos) << log.text();
  EXPECT_NE(log.text().find("refused the user name or the password"), std::string::npos) << log.text();
  EXPECT_EQ(log.text().find("wr0ng"), std::string::npos) << log.text();
}

TEST_F(RequestLockTest, OtherOptionsAreForRequestsThatComeThen) {
  std::optional<poco::RequestLocks> locks;
  const auto wrap = [&](Factory handlers) {
    const poco::LockedRoute route{.name = "order", .match = "PUT /orders/{id}", .by = "path id"};
    locks.emplace(managerOn(redis.uri()),
                  poco::RequestLockOptions{.routes = {route}, .report = faults.hook()});
    return locks->wrap(std::move(handlers));
  };
  AppServer server(wrap, [&](HTTPServerRequest&, HTTPServerResponse& response) {
    const Lock* lock = poco::currentLock();
    reply(response, 200, lock == nullptr ? "none" : std::string(lock->key()));
  });
  EXPECT_EQ(server.put("/orders/7").body, "order/7");
  locks->reload({.routes = {{.name = "item", .match = "PUT /items/{id}", .by = "path id"}}});
  EXPECT_EQ(server.put("/orders/7").body, "none");
  EXPECT_EQ(server.put("/items/7").body, "item/7");
  EXPECT_THROW(locks->reload({.routes = {{.name = "wrong"}}}), std::invalid_argument);
  const Lock holder = managerOn(redis.uri())->lock("item/7");
  EXPECT_EQ(server.put("/items/7").status, 423) << "the old options stay";
  EXPECT_EQ(faults.seen(), std::vector{RequestLockFault::busy}) << "and so do hooks";
}

TEST_F(RequestLockTest, KeysOfSeveralSourcesDoNotMeet) {
  const auto wrap = [&](Factory handlers) {
    return poco::RequestLocks(managerOn(redis.uri()),
                              {.routes = {{.name = "item",
                                           .match = "PUT /items",
                                           .by = "query shop, header X-Item | plain"}}})
        .wrap(std::move(handlers));
  };
  AppServer server(wrap, [&](HTTPServerRequest&, HTTPServerResponse& response) {
    const Lock* lock = poco::currentLock();
    reply(response, 200, lock == nullptr ? "none" : std::string(lock->key()));
  });
  const auto keyOf = [&](const std::string& shop, const std::string& item) {
    return server.ask("/items?shop=" + shop, {"-X", "PUT", "-H", "X-Item: " + item}).body;
  };
  EXPECT_EQ(keyOf("a", "b"), "item/a/b");
  // printf VALUE | sha256sum
  EXPECT_EQ(keyOf("a", "b/c"), "item/a/#b9e2beb9a0cdd309d9f98c1930bf0e3a");
  std::set<std::string> keys;
  for (const std::string shop : {"a", "a/b", "a/b/c", "/", "a/"}) {
    for (const std::string item : {"c", "b/c", "b", "/c", "/"}) keys.insert(keyOf(shop, item));
  }
  EXPECT_EQ(keys.size(), 25U);
}

TEST_F(RequestLockTest, RoutesOfOneScopeShareTheirLocks) {
  const auto wrap = [&](Factory handlers) {
    return poco::RequestLocks(managerOn(redis.uri()), {.routes = {{.name = "change",
                                                                   .match = "PUT /s/{shop}/o/{id}",
                                                                   .by = "path shop, path id",
                                                                   .scope = "order"},
                                                                  {.name = "cancel",
                                                                   .match = "DELETE /s/{shop}/o/{id}",
                                                                   .by = "path shop, path id",
                                                                   .scope = "order"}}})
        .wrap(std::move(handlers));
  };
  AppServer server(wrap, [&](HTTPServerRequest&, HTTPServerResponse& response) {
    reply(response, 200, std::string(poco::currentLock()->key()));
  });
  EXPECT_EQ(server.put("/s/1/o/2").body, "order/1/2");
  EXPECT_EQ(server.ask("/s/1/o/2", {"-X", "DELETE"}).body, "order/1/2");
}

}  // namespace
}  // namespace lockkeeper::test
