#include <Poco/Exception.h>

#include <utility>

#include "captured_log.h"
#include "idempotency_fixture.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/poco/request_locks.h"
#include "process.h"

// What happens to idempotent requests when something fails.

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

TEST_F(IdempotencyTest, AHandlerThatThrowsLeavesNothingBehind) {
  AppServer server(once(), [&](HTTPServerRequest&, HTTPServerResponse& response) {
    if (++runs == 1) throw std::runtime_error("a secret");
    if (runs == 2) {
      response.send() << "half an ans";
      throw Poco::IOException("a secret");
    }
    reply(response, 201, "run " + std::to_string(runs));
  });
  for (int i = 0; i < 2; ++i) {
    const CurlAnswer failed = server.post("/orders/", "k", "{}");
    EXPECT_EQ(failed.status, 500);
    EXPECT_EQ(failed.body.find("secret"), std::string::npos) << failed.body;
    EXPECT_EQ(failed.body.find("half"), std::string::npos) << failed.body;
  }
  EXPECT_EQ(server.post("/orders/", "k", "{}").body, "run 3");
  EXPECT_EQ(server.post("/orders/", "k", "{}").body, "run 3");
}

TEST_F(IdempotencyTest, AHandlerThatThrowsInALongAnswerLeavesNothingBehindEither) {
  poco::IdempotencyOptions given = options();
  given.maxAnswer = 1024;
  AppServer server(once(given), [&](HTTPServerRequest&, HTTPServerResponse& response) {
    if (++runs > 1) return reply(response, 201, "run " + std::to_string(runs));
    response.setContentLength(5000);
    response.send() << std::string(2000, 'b') << std::flush;
    EXPECT_NE(redis.command({"KEYS", ":lockkeeper:v:*"}), "");
    throw std::runtime_error("a secret");
  });
  EXPECT_THROW((void)server.post("/orders/", "k", "{}"), std::runtime_error) << "half an answer";
  EXPECT_EQ(server.post("/orders/", "k", "{}").body, "run 2");
}

TEST_F(IdempotencyTest, AHandlerThatThrowsInLongAnswersTakesNoRoomOfItsClient) {
  poco::IdempotencyOptions given = options("POST /orders/*", "header X-User");
  given.maxAnswer = 1024;
  given.maxStoredPerClient = 0;  // and 64 KiB for facts, of 300 bytes each
  AppServer server(once(given), [&](HTTPServerRequest& request, HTTPServerResponse& response) {
    ++runs;
    if (!request.has("X-Fails")) return reply(response, 201, "bought");
    response.setContentLength(5000);
    response.send() << std::string(2000, 'b') << std::flush;
    throw std::runtime_error("a secret");
  });
  constexpr int more = 65'536 / 300 + 1;
  for (int i = 0; i < more; ++i) {
    (void)readToEnd(
        server.send("POST /orders/ HTTP/1.1\r\nHost: x\r\nX-User: ann\r\nX-Fails: yes\r\nContent-Length: "
                    "0\r\nIdempotency-Key: " +
                    std::to_string(i) + "\r\n\r\n"));
  }
  EXPECT_EQ(runs, more);
  EXPECT_EQ(server.post("/orders/", "k", "{}", {"-H", "X-User: ann"}).status, 201);
}

TEST_F(IdempotencyTest, WhatAnotherServerHasKeptStaysWhenAHandlerThrowsLater) {
  AppServer two(once(), counting());
  poco::IdempotencyOptions given = options();
  given.maxAnswer = 1024;
  given.routes.front().ttl = 2s;
  AppServer one(once(given), [&](HTTPServerRequest& request, HTTPServerResponse& response) {
    redis.command({"DEL", std::string(poco::currentLock()->key())});
    EXPECT_EQ(two.post(request.getURI(), "k", "{}").body, "run 1");
    EXPECT_TRUE(waitUntil([] { return !poco::currentLock()->valid(); }));
    response.setContentLength(5000);
    response.send() << std::string(2000, 'b') << std::flush;
    throw std::runtime_error("a secret");
  });
  EXPECT_THROW((void)one.post("/orders/", "k", "{}"), std::runtime_error);
  EXPECT_EQ(two.post("/orders/", "k", "{}").body, "run 1");
}

TEST_F(IdempotencyTest, WhileTheStoreIsDownNothingIsCarriedOut) {
  AppServer server(once(), counting());
  redis.kill();
  const CurlAnswer answer = server.post("/orders/", "k", "{}");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.header("retry-after"), "1");
  EXPECT_EQ(answer.header("content-type"), "application/problem+json");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(count(IdempotencyEvent::storeDown), 1);
}

TEST_F(IdempotencyTest, WithoutAStoreThatCanGiveTheLeaseNothingIsCarriedOut) {
  const auto shortLeases = managerOn("redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3?restartGuard=1s");
  const auto filtered = [&](Factory handlers) {
    return poco::Idempotency(shortLeases, valuesOn(redis.uri()), options()).wrap(std::move(handlers));
  };
  AppServer server(filtered, counting());
  EXPECT_EQ(server.post("/orders/", "k", "{}").status, 503);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(count(IdempotencyEvent::storeDown), 1);
}

TEST_F(IdempotencyTest, TheLogSaysWhyAStoreCannotBeAsked) {
  const CapturedLog log("lockkeeper.http");
  const RedisServer guarded({.password = "right"});
  const std::string uri = "redis://:wr0ng@127.0.0.1:" + std::to_string(guarded.port());
  poco::IdempotencyOptions given = options();
  given.report = nullptr;
  AppServer server(
      [&](Factory handlers) {
        return poco::Idempotency(managerOn(uri), valuesOn(uri), given).wrap(std::move(handlers));
      },
      counting());
  EXPECT_EQ(server.post("/orders/", "k", "{}").status, 503);
  EXPECT_NE(log.text().find("route order: a request was refused: "), std::string::npos) << log.text();
  EXPECT_NE(log.text().find("refused the user name or the password"), std::string::npos) << log.text();
  EXPECT_EQ(log.text().find("wr0ng"), std::string::npos) << log.text();
}

TEST_F(IdempotencyTest, AnAnswerThatCannotBeKeptIsStillSent) {
  RedisServer answers;
  AppServer server(
      [&](Factory handlers) {
        return poco::Idempotency(managerOn(redis.uri()), valuesOn(answers.uri()), options())
            .wrap(std::move(handlers));
      },
      [&](HTTPServerRequest&, HTTPServerResponse& response) {
        if (++runs == 1) answers.kill();
        reply(response, 201, "run " + std::to_string(runs));
      });
  EXPECT_EQ(server.post("/orders/", "k", "{}").body, "run 1");
  EXPECT_EQ(count(IdempotencyEvent::notKept), 1);
  answers.restart();
  EXPECT_TRUE(waitUntil([&] { return server.post("/orders/", "k", "{}").body == "run 2"; }))
      << "at least once";
}

TEST_F(IdempotencyTest, AClientThatReadsNothingOfALongAnswerDoesNotKeepTheLock) {
  AppServer server(once(), answeringWith(32U << 20), 32, 3s);
  const auto client =
      server.send("POST /orders/ HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(waitUntil([&] { return runs == 1; }));
  EXPECT_TRUE(waitUntil([&] { return server.connections() == 0; })) << "its thread is free";
  EXPECT_EQ(redis.command({"KEYS", "idempotency/*"}), "");
}

TEST_F(IdempotencyTest, AForeignValueIsNotTakenForAnAnswer) {
  AppServer server(once(), counting());
  server.post("/orders/", "k", "{}");
  std::string key = redis.command({"KEYS", ":lockkeeper:v:*"});
  key.resize(key.find('\n'));
  for (const std::string value : {"", "?", "\x01", "\x01too short"}) {
    redis.command({"SET", key, value});
    EXPECT_EQ(server.post("/orders/", "k", "{}").status, 503) << value;
  }
  EXPECT_EQ(runs, 1);
}

TEST_F(IdempotencyTest, TheFirstAnswerThatWasKeptStays) {
  AppServer two(once(), counting());
  AppServer one(once(), [&](HTTPServerRequest& request, HTTPServerResponse& response) {
    // It loses its lock, and another server is faster.
    redis.command({"DEL", std::string(poco::currentLock()->key())});
    EXPECT_EQ(two.post(request.getURI(), "k", "{}").body, "run 1");
    reply(response, 201, "late");
  });
  EXPECT_EQ(one.post("/orders/", "k", "{}").body, "late");
  EXPECT_EQ(one.post("/orders/", "k", "{}").body, "run 1");
  EXPECT_EQ(two.post("/orders/", "k", "{}").body, "run 1");
}

/// A store of values in which something happens after the first look.
class WatchedValues final : public ValueStore {
 public:
  WatchedValues(std::shared_ptr<ValueStore> values, std::function<void()> afterFirstGet)
      : values_(std::move(values)), afterFirstGet_(std::move(afterFirstGet)) {}

  std::optional<std::string> get(std::string_view key, Instant deadline) override {
    auto found = values_->get(key, deadline);
    if (auto happening = std::exchange(afterFirstGet_, {})) happening();
    return found;
  }
  void put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override {
    values_->put(key, value, ttl, deadline);
  }
  bool add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override {
    return values_->add(key, value, ttl, deadline);
  }
  bool erase(std::string_view key, Instant deadline) override { return values_->erase(key, deadline); }

 private:
  const std::shared_ptr<ValueStore> values_;
  std::function<void()> afterFirstGet_;
};

TEST_F(IdempotencyTest, ARequestThatEndsBetweenLookAndLockIsNotRunAgain) {
  AppServer two(once(), counting());
  const auto values = std::make_shared<WatchedValues>(
      valuesOn(redis.uri()), [&] { EXPECT_EQ(two.post("/orders/", "k", "{}").body, "run 1"); });
  AppServer one(
      [&](Factory handlers) {
        return poco::Idempotency(managerOn(redis.uri()), values, options()).wrap(std::move(handlers));
      },
      counting());
  EXPECT_EQ(one.post("/orders/", "k", "{}").body, "run 1");
  EXPECT_EQ(runs, 1);
}

TEST_F(IdempotencyTest, AroundALockARefusalIsNotKept) {
  const auto wrap = [&](Factory handlers) {
    poco::RequestLocks locks(
        managerOn(redis.uri()),
        {.routes = {
             {.name = "order", .match = "POST /orders/{id}", .by = "path id", .lock = {.waitFor = 50ms}}}});
    return once()(locks.wrap(std::move(handlers)));
  };
  AppServer server(wrap, [&](HTTPServerRequest&, HTTPServerResponse& response) {
    ++runs;
    reply(response, 200, std::string(poco::currentLock()->key()));
  });
  std::optional<Lock> holder = managerOn(redis.uri())->lock("order/7");
  EXPECT_EQ(server.post("/orders/7", "k", "{}").status, 423);
  ASSERT_EQ(holder->release(), ReleaseResult::released);
  EXPECT_EQ(server.post("/orders/7", "k", "{}").body, "order/7") << "the innermost lock";
  EXPECT_EQ(server.post("/orders/7", "k", "{}").header("idempotent-replayed"), "true");
  EXPECT_EQ(runs, 1);
}

TEST_F(IdempotencyTest, AroundALockARefusalIsSentHoweverTheBodyCame) {
  const TempFolder folder;
  writeFile(folder / "long", std::string(2U << 20, 'b'));
  RedisServer lockStore;
  poco::IdempotencyOptions given = options();
  given.maxBody = 4U << 20;
  const auto wrap = [&](Factory handlers) {
    poco::RequestLocks locks(managerOn(lockStore.uri()),
                             {.routes = {{.name = "order", .match = "POST /orders/{id}", .by = "path id"}}});
    return once(given)(locks.wrap(std::move(handlers)));
  };
  AppServer server(wrap, [](HTTPServerRequest&, HTTPServerResponse&) { throw std::runtime_error("before"); });
  const auto expectAnswered = [&](int status) {
    const std::vector<std::string> chunked{"-H", "Transfer-Encoding: chunked"};
    EXPECT_EQ(server.post("/orders/7", "a", "{}").status, status);
    EXPECT_EQ(server.post("/orders/7", "b", "{}", chunked).status, status) << "in chunks";
    EXPECT_EQ(server.post("/orders/7", "c", "@" + (folder / "long").string()).status, status) << "long";
    EXPECT_EQ(server.post("/orders/7", "d", "@" + (folder / "long").string(), chunked).status, status);
  };
  expectAnswered(500);
  std::optional<Lock> holder = managerOn(lockStore.uri())->lock("order/7");
  expectAnswered(423);
  lockStore.kill();
  expectAnswered(503);
}

TEST_F(IdempotencyTest, AroundALockAClientThatHangsUpIsNoticed) {
  const auto wrap = [&](Factory handlers) {
    poco::RequestLocks locks(
        managerOn(redis.uri()),
        {.routes = {
             {.name = "order", .match = "POST /orders/{id}", .by = "path id", .lock = {.waitFor = 10min}}}});
    return once()(locks.wrap(std::move(handlers)));
  };
  AppServer server(wrap, counting());
  std::optional<Lock> holder = managerOn(redis.uri())->lock("order/7");
  const std::string before = redis.command({"DBSIZE"});
  auto client = server.send("POST /orders/7 HTTP/1.1\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}");
  ASSERT_TRUE(waitUntil([&] { return redis.command({"DBSIZE"}) != before; })) << "its key is in use";
  client.close();
  EXPECT_TRUE(waitUntil([&] { return server.connections() == 0; }));
  EXPECT_EQ(runs, 0);
  ASSERT_EQ(holder->release(), ReleaseResult::released);
  EXPECT_EQ(server.post("/orders/7", "k", "{}").body, "run 1") << "the key is not used up";
}

TEST_F(IdempotencyTest, WorksInsideOneProcessWithoutAStore) {
  const auto manager = std::make_shared<LockManager>(std::make_shared<MemoryDriver>());
  const auto values = std::make_shared<MemoryValues>();
  AppServer server(
      [&](Factory handlers) {
        return poco::Idempotency(manager, values, options()).wrap(std::move(handlers));
      },
      counting());
  EXPECT_EQ(server.post("/orders/", "k", "{}").body, "run 1");
  EXPECT_EQ(server.post("/orders/", "k", "{}").body, "run 1");
}

/// A server in a process of its own.
class ServerProcess {
 public:
  explicit ServerProcess(const RedisServer& redis, const std::filesystem::path& journal)
      : process_({IDEMPOTENT_SERVER, std::to_string(redis.port()), journal},
                 {.standardOutput = folder_ / "port"}) {
    if (!waitUntil([&] { return readFile(folder_ / "port").ends_with('\n'); }))
      throw std::runtime_error("no server");
  }
  std::string url() const {
    return "http://127.0.0.1:" + std::to_string(std::stoi(readFile(folder_ / "port"))) + "/orders";
  }
  CurlAnswer post(const std::string& key, std::vector<std::string> arguments = {}) const {
    arguments.insert(arguments.end(), {"-H", "Idempotency-Key: " + key, "--data", "{}", url()});
    return curl(arguments);
  }
  Process& process() { return process_; }

 private:
  TempFolder folder_;
  Process process_;
};

TEST_F(IdempotencyTest, AServerThatIsKilledLeavesTheRequestToBeCarriedOutAgain) {
  const TempFolder folder;
  const auto ran = [&] { return readFile(folder / "journal"); };
  writeFile(folder / "journal", "");
  ServerProcess one(redis, folder / "journal");
  const ServerProcess two(redis, folder / "journal");
  Process client({"curl", "-s", "-H", "X-Hang: yes", "-H", "Idempotency-Key: k", "--data", "{}", one.url()});
  ASSERT_TRUE(waitUntil([&] { return ran() == "run\n"; }));
  EXPECT_EQ(two.post("k").status, 409);
  one.process().signal(SIGKILL);
  EXPECT_TRUE(waitUntil([&] { return two.post("k").status == 201; })) << "when the lease has ended";
  EXPECT_EQ(ran(), "run\nrun\n");
  EXPECT_EQ(two.post("k").header("idempotent-replayed"), "true");
  EXPECT_EQ(ran(), "run\nrun\n");
}

}  // namespace
}  // namespace lockkeeper::test
