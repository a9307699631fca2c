#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "lockkeeper/latch/latch.h"
#include "lockkeeper/redis/value_store.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<ValueStore> openValues(const std::string& uri) {
  StoreRegistry registry;
  redis::use(registry);
  return registry.openValues(uri);
}

/// Waits for a value in another thread, and looks for it only when it is told to.
class Told {
 public:
  Told(std::string uri, std::string key)
      : value_(std::async(std::launch::async, [this, uri = std::move(uri), key = std::move(key)] {
          return openValues(uri)->await(key, systemClock()->now() + 1h, stop_.get_token(), soon());
        })) {}
  ~Told() { stop_.request_stop(); }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

  /// Who has to be stopped was not told, although it looks once more then.
  std::optional<std::string> get() {
    if (value_.wait_for(20s) == std::future_status::ready) return value_.get();
    return "not told";
  }
  void stop() { stop_.request_stop(); }

 private:
  std::stop_source stop_;
  std::future<std::optional<std::string>> value_;
};

class AwaitedValue : public ::testing::Test {
 protected:
  bool isAwaitedBy(int count) const {
    return waitUntil([&] {
      return server.command({"ZCARD", "{:lockkeeper:v:k}:lockkeeper:waiting"}) == std::to_string(count);
    });
  }

  const RedisServer server{
      {.users = {"user keeper on >let-me-in ~* -@all +@connection +info +get +set +del"}}};
  const std::shared_ptr<ValueStore> values = openValues(server.uri());
};

TEST_F(AwaitedValue, IsToldToAllWhoWaitForItInWhateverProcess) {
  Told first(server.uri(), "k");
  Told second(server.uri(), "k");
  Told stopped(server.uri(), "another");
  ASSERT_TRUE(isAwaitedBy(2));
  values->announce("k", "", 1min, soon());
  EXPECT_EQ(first.get(), "");
  EXPECT_EQ(second.get(), "");
  EXPECT_EQ(server.command({"EXISTS", "{:lockkeeper:v:k}:lockkeeper:waiting"}), "0");
  EXPECT_NE(server.command({"TTL", "{:lockkeeper:v:another}:lockkeeper:waiting"}), "-1") << "nothing stays";
  stopped.stop();
  EXPECT_EQ(stopped.get(), std::nullopt);
}

TEST_F(AwaitedValue, IsFoundWhenTheMessageIsLost) {
  Told told(server.uri(), "k");
  ASSERT_TRUE(isAwaitedBy(1));
  ASSERT_EQ(server.command({"CLIENT", "KILL", "TYPE", "pubsub"}), "1");
  values->put("k", "1", 1min, soon());  // of which nobody is told
  EXPECT_EQ(told.get(), "1");
}

TEST_F(AwaitedValue, IsAskedForAnewOnAnotherConnection) {
  Told told(server.uri(), "k");
  ASSERT_TRUE(isAwaitedBy(1));
  ASSERT_EQ(server.command({"CLIENT", "KILL", "TYPE", "pubsub"}), "1");
  server.command({"DEL", "{:lockkeeper:v:k}:lockkeeper:waiting"});
  ASSERT_TRUE(isAwaitedBy(1)) << "the store is told again who waits";
  values->announce("k", "1", 1min, soon());
  EXPECT_EQ(told.get(), "1");
}

TEST_F(AwaitedValue, IsLookedForByAUserWithoutTheRights) {
  const std::string uri = "redis://keeper:let-me-in@127.0.0.1:" + std::to_string(server.port()) + "/0";
  Told told(uri, "k");
  openValues(uri)->announce("k", "1", 1min, soon());
  EXPECT_EQ(told.get(), "1");
}

TEST(Latches, OpenForParticipantsWithConnectionsOfTheirOwnAndLeaveNothingForEver) {
  const RedisServer server;
  const std::vector<std::string> names{"a", "b", "c"};
  std::atomic<int> passed{0};
  {
    std::vector<std::jthread> participants;
    for (const std::string& name : names) {
      participants.emplace_back([&, values = openValues(server.uri())] {
        CountDownLatch latch(values, "import", names, {.keep = 1min});
        latch.countDown(name);
        latch.countDown(name);
        Barrier barrier(values, "steps", names, {.keep = 1min});
        if (!latch.wait(20s) || !latch.missing().empty()) return;
        for (std::uint64_t round = 0; round < 3; ++round) {
          if (!barrier.arriveAndWait(name, round, 20s)) return;
        }
        ++passed;
      });
    }
  }
  EXPECT_EQ(passed, 3);
  const char* const endless =
      "local n = 0 for _, key in ipairs(redis.call('KEYS', '*')) do "
      "if redis.call('PTTL', key) < 0 then n = n + 1 end end return {n, #redis.call('KEYS', '*')}";
  EXPECT_EQ(server.command({"EVAL", endless, "0"}), "0\n12\n") << "values without an end, and all";
}

TEST(ValueStore, AKeyOfAnotherTypeFailsOnlyItsOwnCall) {
  const RedisServer server;
  const auto values = openValues(server.uri());
  server.command({"RPUSH", ":lockkeeper:v:a", "x"});
  try {
    (void)values->get("a", soon());
    ADD_FAILURE() << "a list was taken for a value";
  } catch (const ConfigError& fault) {
    EXPECT_NE(std::string(fault.what()).find("another type"), std::string::npos) << fault.what();
  }
  values->put("b", "1", 1min, soon());
  EXPECT_EQ(values->get("b", soon()), "1");
}

TEST(ValueStore, IsNotThereOnEveryStore) {
  EXPECT_THROW(openValues("redlock://a:1,b:2,c:3"), ConfigError);
  EXPECT_THROW(openValues("memory://host"), ConfigError);
}

TEST_F(RedisFaultTest, ValuesAreApartFromLocksOfTheSameName) {
  const auto values = openValues(server.uri());
  server.command({"SET", "a", "a lock"});
  EXPECT_TRUE(values->add("a", "1", 1min, soon()));
  EXPECT_TRUE(values->erase("a", soon()));
  EXPECT_EQ(server.command({"GET", "a"}), "a lock");
}

TEST_F(RedisFaultTest, AValueWhoseReplyIsCutIsNoValue) {
  const auto values = openValues("redis://127.0.0.1:" + std::to_string(proxy.port()));
  values->put("a", "0123456789", 1min, soon());
  for (const std::size_t bytes : {0U, 3U, 5U, 9U, 16U}) {
    values->get("a", soon());
    proxy.cutReplies(bytes, Ending::fin);
    EXPECT_THROW(values->get("a", soon()), OutcomeUnknown) << bytes;
    EXPECT_EQ(proxy.fired(), 1U);
    proxy.passThrough();
    EXPECT_EQ(values->get("a", soon()), "0123456789");
  }
}

TEST_F(RedisFaultTest, ValuesSayThatTheirStoreIsDown) {
  const auto values = openValues(server.uri());
  server.kill();
  EXPECT_THROW(values->get("a", soon()), StoreUnavailable);
  EXPECT_THROW(values->put("a", "1", 1min, soon()), StoreUnavailable);
  server.restart();
  EXPECT_TRUE(waitUntil([&] {
    try {
      values->put("a", "1", 1min, soon());
      return true;
    } catch (const StoreUnavailable&) {
      return false;
    }
  }));
}

TEST_F(RedisFaultTest, AChildProcessLeavesTheParentsValuesAlone) {
  auto values = openValues(server.uri());
  values->put("a", "1", 1min, soon());
  const pid_t child = fork();
  if (child == 0) {
    try {
      values->get("a", soon());
    } catch (const ForkedError&) {
      values.reset();
      _exit(0);
    }
    _exit(1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(values->get("a", soon()), "1");
}

}  // namespace
}  // namespace lockkeeper::test
