#include <memory>
#include <string>
#include <vector>

#include "fleet_stores.h"
#include "lockkeeper/migration/migrating_driver.h"
#include "migration_timing.h"
#include "redis_server.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using migration::MigrationState;
using migration::Rules;

/// What a fleet costs the servers of its stores.
class FleetCost : public ::testing::Test {
 protected:
  static Instant soon() { return systemClock()->now() + 10s; }

  /// The number after `name` in INFO's section.
  long long info(const std::string& section, const std::string& name) const {
    const std::string all = redis.command({"INFO", section});
    const auto found = all.find(name);
    return found == std::string::npos ? 0 : std::stoll(all.substr(found + name.size()));
  }
  long long calls(const std::string& command) const {
    return info("commandstats", "cmdstat_" + command + ":calls=");
  }
  void decree(const Rules& current, const Rules& target) {
    const MigrationState state = stateStore.read(soon());
    ASSERT_TRUE(stateStore.change(state, state.version + 1, current, target, soon()));
  }

  RedisServer redis;
  std::string uri = "redis://127.0.0.1:" + std::to_string(redis.port());
  migration::StateStore stateStore{openStateStore(uri + "/2"), "migration"};
};

TEST_F(FleetCost, AHeartbeatCostsTheSameHoweverManyMembersThereAreAndHoweverLongTheRules) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "order:" + std::to_string(i) + "* = both, ";
  ASSERT_NO_FATAL_FAILURE(decree(Rules::parse(text + "* = both"), Rules::parse(text + "* = both")));
  MigrationState known;
  migration::Member member;
  member.lease = 15s;
  member.locksEndAfter = 5min;
  for (int i = 0; i < 1000; ++i) {
    member.id = "member" + std::to_string(i);
    member.labels = {"host:" + std::to_string(i) + "~"};
    stateStore.heartbeat(member, known, soon());
  }
  redis.command({"CONFIG", "RESETSTAT"});
  constexpr int beats = 100;
  for (int i = 0; i < beats; ++i) stateStore.heartbeat(member, known, soon());
  EXPECT_LT(info("stats", "total_net_output_bytes:") / beats, 200);
  EXPECT_LT(info("stats", "total_net_input_bytes:") / beats, 1000);
  EXPECT_EQ(calls("hgetall"), 0);
  EXPECT_EQ(known.target, Rules::parse(text + "* = both"));
  EXPECT_EQ(stateStore.read(soon()).members.size(), 1000U);
}

TEST_F(FleetCost, ALargeOldStoreIsNotReadByEachMemberAgainAndAgain) {
  constexpr long long keys = 50'000;
  redis.command(
      {"EVAL", "for i = 1, ARGV[1] do redis.call('SET', 'data:' .. i, 1) end", "0", std::to_string(keys)});
  ASSERT_NO_FATAL_FAILURE(decree(Rules(migration::Phase::both), Rules(migration::Phase::both)));
  std::vector<std::shared_ptr<migration::MigratingDriver>> fleet;
  for (int i = 0; i < 4; ++i) {
    const auto newStore = openStore(uri + "/2");
    fleet.push_back(std::make_shared<migration::MigratingDriver>(
        openStore(uri + "/0"), newStore, capability<SharedRecords>(newStore), migrationTiming()));
    const std::string label = "host:" + std::to_string(i);
    const Claim claim{"order:1", Token::generate(*systemRandom()), label};
    ASSERT_TRUE(std::holds_alternative<Granted>(fleet.back()->acquire({claim, 1s, soon()})));
    ASSERT_EQ(fleet.back()->release(claim, soon()), ReleaseOutcome::released);
  }
  redis.command({"CONFIG", "RESETSTAT"});
  const Instant began = systemClock()->now();
  const Rules target = Rules::parse("order:* = modern, * = both");
  ASSERT_NO_FATAL_FAILURE(decree(Rules(migration::Phase::both), target));
  ASSERT_TRUE(waitUntil([&] { return stateStore.read(soon()).current == target; }, 60s));
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(systemClock()->now() - began).count();
  EXPECT_GE(calls("scan"), keys / 500);
  EXPECT_LE(calls("scan"), 100 * (seconds + 1));
  EXPECT_LT(calls("get"), 1000) << "reads keys that stay in the old store";
}

}  // namespace
}  // namespace lockkeeper::test
