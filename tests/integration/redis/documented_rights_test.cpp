// Accounts with exactly the rights that the pages of the drivers name.

#include <future>
#include <optional>
#include <string>

#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/store/shared_records.h"
#include "lockkeeper/store/value_store.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* rightsOfLocks =
    "+@connection +info +set +get +incr +del +pexpire +pttl +time +eval +evalsha +scan +wait";

/// A server with an account that has these rights, on all keys.
class Account {
 public:
  explicit Account(const std::string& rights)
      : server({.users = {"user keeper on >let-me-in ~* resetchannels -@all " + rights}}) {}

  std::string uri(const std::string& scheme) const {
    return scheme + "://keeper:let-me-in@127.0.0.1:" + std::to_string(server.port()) + "/0";
  }
  static StoreRegistry registry() {
    StoreRegistry made;
    redis::use(made);
    return made;
  }

  const RedisServer server;
};

TEST(DocumentedRights, AreEnoughForLegacyLocks) {
  const Account account("+@connection +info +get +set +del +pttl +time +eval +evalsha +scan +type");
  const auto driver = Account::registry().open(account.uri("redis+legacy"));
  LockManager here(driver);
  LockManager there(Account::registry().open(account.uri("redis+legacy")));
  Lock held = here.lock("k", {.ttl = 2s});
  EXPECT_FALSE(there.tryLock("k"));
  held.renew();
  EXPECT_TRUE(driver->holder("k", soon()));
  int listed = 0;
  capability<Browsable>(*driver)->list(
      "", [&](auto, auto&) { return ++listed > 0; }, soon());
  EXPECT_EQ(listed, 1);
  auto next = std::async(std::launch::async, [&] { return there.tryLock("k", {.waitFor = 30s}); });
  EXPECT_EQ(held.release(), ReleaseResult::released);
  EXPECT_TRUE(next.get());
  account.server.command({"SET", "expired", "1700000000"});
  const auto taken = here.tryLock("expired");
  EXPECT_TRUE(taken);
  EXPECT_TRUE(capability<Breakable>(*driver)->breakLock("expired", soon()));
  account.server.command({"LPUSH", "list", "element"});
  EXPECT_FALSE(here.tryLock("list"));
}

TEST(DocumentedRights, AreEnoughForValuesAndTheirWaiters) {
  const Account account(
      "+@connection +info +get +set +del +time +eval +evalsha +zadd +zrange +zremrangebyscore +pexpire "
      "+publish +subscribe &lockkeeper:*");
  const auto values = Account::registry().openValues(account.uri("redis"));
  values->put("k", "1", 1min, soon());
  EXPECT_FALSE(values->add("k", "2", 1min, soon()));
  EXPECT_EQ(values->get("k", soon()), "1");
  EXPECT_TRUE(values->erase("k", soon()));
  auto awaited = std::async(std::launch::async,
                            [&] { return values->await("k", systemClock()->now() + 1min, {}, soon()); });
  EXPECT_TRUE(waitUntil([&] {
    return account.server.command({"ZCARD", "{:lockkeeper:v:k}:lockkeeper:waiting"}) == "1";
  })) << "it polls";
  Account::registry().openValues(account.uri("redis"))->announce("k", "3", 1min, soon());
  EXPECT_EQ(awaited.get(), "3");
}

TEST(DocumentedRights, AreEnoughForTheStateOfAMigration) {
  const Account account(std::string(rightsOfLocks) + " +hset +hget +hgetall +hdel");
  const auto driver = Account::registry().open(account.uri("redis"));
  auto& records = *capability<SharedRecords>(*driver);
  EXPECT_TRUE(records.replace("t", "state", std::nullopt, "both", {}, soon()));
  const WantedRecord state{"state"};
  EXPECT_EQ(records.write("t", "member", "here", 1min, {&state, 1}, soon()).size(), 1U);
  EXPECT_EQ(records.read("t", soon()).size(), 2U);
  EXPECT_FALSE(records.replace("t", "state", "legacy", "both", {}, soon()));
}

}  // namespace
}  // namespace lockkeeper::test
