#include <array>
#include <thread>

#include "fleet_fixture.h"

namespace lockkeeper::migration {
namespace {

/// Where another process can come in between while one makes the target the current rules.
enum class Point { heartbeat, firstRead, look, secondRead, commit, afterwards };

struct Order {
  Point joins;
  Point takes;
};

/// A process joins, and takes a key, while another commits and takes the same key: each order of these.
class JoinOrders : public Fleet, public ::testing::WithParamInterface<Order> {
 protected:
  /// Nobody has written a target: what each process is configured for differs.
  JoinOrders() { options.observation = 0s; }

  void startCommitter() {
    committer = start("modern", "committer:1");
    const auto store = std::make_shared<LookedThrough>(oldStore);
    store->before = [this] {
      reach(Point::look);
      looked = true;
    };
    committer.driver = std::make_shared<MigratingDriver>(
        store, newStore, committer.records, options,
        Environment{clock, std::make_shared<FakeRandom>(77), committer.notes});
    committer.records->before = [this](std::string_view call) {
      if (call == "write") looked = false;
      if (call == "write") reach(Point::heartbeat);
      if (call == "read") reach(looked ? Point::secondRead : Point::firstRead);
      if (call == "replace") reach(Point::commit);
    };
  }

  void reach(Point point) {
    if (!armed) return;
    if (GetParam().joins == point && !joined) {
      joined = true;
      const Claimant who{"joining", newcomer.label};
      EXPECT_TRUE(takes(newcomer, who));
      newcomer.driver->release(who.claim(), soon());
    }
    if (GetParam().takes == point && joined && !newcomerHolds) newcomerHolds = takes(newcomer, lateClaim);
  }

  /// Until the committer begins its next attempt to commit.
  void passUntilItLooks() {
    bool looks = false;
    for (int i = 0; i < 100 && !looks; ++i) {
      pass(1s);
      const MigrationState state = stateStore.read(soon());
      looks = committerReadyIn(state) <= 1s;
    }
    ASSERT_TRUE(looks);
  }
  std::chrono::milliseconds committerReadyIn(const MigrationState& state) const {
    return options.lease + options.maxTtl - state.since;
  }

  Process committer;
  Process newcomer;
  Claimant lateClaim{"k", "newcomer:1"};
  std::atomic<bool> armed{false};
  bool looked = false;  // in this heartbeat
  bool joined = false;
  bool newcomerHolds = false;
};

TEST_P(JoinOrders, NeverLeadToTwoHolders) {
  startCommitter();
  ++hearts;
  const Claimant first{"first", "committer:1"};
  ASSERT_TRUE(takes(committer, first));
  committer.driver->release(first.claim(), soon());
  ASSERT_TRUE(clock->awaitWaiters(hearts));
  ASSERT_NO_FATAL_FAILURE(passUntilItLooks());
  newcomer = start("legacy", "newcomer:1");
  const int before = committer.records->replacements;
  armed = true;
  for (int i = 0; i < 10 && committer.records->replacements == before; ++i) {
    clock->advance(1s);
    ASSERT_TRUE(clock->awaitWaiters(1));
    const Instant until = systemClock()->now() + 100ms;
    while (committer.records->replacements == before && systemClock()->now() < until)
      std::this_thread::yield();
  }
  armed = false;
  if (joined && GetParam().joins == Point::commit) {
    EXPECT_GT(committer.records->refusals, 0) << "it has joined since the members were read";
  }
  armed = true;
  reach(Point::afterwards);
  if (!newcomerHolds) newcomerHolds = joined && takes(newcomer, lateClaim);
  armed = false;
  const bool committerHolds = takes(committer, {"k", "committer:1"});
  EXPECT_TRUE(newcomerHolds);
  EXPECT_FALSE(committerHolds);
}

std::vector<Order> allOrders() {
  std::vector<Order> all;
  for (int joins = 0; joins <= static_cast<int>(Point::afterwards); ++joins) {
    for (int takes = joins; takes <= static_cast<int>(Point::afterwards); ++takes) {
      all.push_back({static_cast<Point>(joins), static_cast<Point>(takes)});
    }
  }
  return all;
}

std::string nameOf(const ::testing::TestParamInfo<Order>& of) {
  constexpr std::array names{"Heartbeat", "FirstRead", "Look", "SecondRead", "Commit", "Afterwards"};
  return std::string("JoinsAt") + names.at(static_cast<std::size_t>(of.param.joins)) + "TakesAt" +
         names.at(static_cast<std::size_t>(of.param.takes));
}

INSTANTIATE_TEST_SUITE_P(All, JoinOrders, ::testing::ValuesIn(allOrders()), nameOf);

/// The clock of the store that keeps the state jumps: it drops the records of living members.
class StateClock : public Fleet {
 protected:
  static constexpr std::chrono::milliseconds jump = 6min;

  StateClock() { options.observation = 0s; }
};

TEST_F(StateClock, AJumpForwardDoesNotHideAMemberFromThoseWhoHaveSeenIt) {
  decree("legacy");
  const Process other = join("legacy", "other:1");  // watches
  const Process holder = join("legacy", "holder:1");
  const Claimant who{"k", "holder:1"};
  ASSERT_TRUE(takes(holder, who));
  advance("modern");
  // Nothing else holds up the step any more.
  for (auto passed = 0s; passed <= options.lease + options.maxTtl; passed += 10s) {
    pass(10s);
    ASSERT_EQ(renew(holder, who), RenewOutcome::renewed);
  }
  holder.records->down = true;  // for less than its lease
  stateClock->advance(jump);
  pass(5s);
  EXPECT_EQ(stores(other), "old+new");
  EXPECT_EQ(renew(holder, who), RenewOutcome::renewed);
  EXPECT_FALSE(takes(other, {"k", "other:1"}));
  holder.records->down = false;
  for (int i = 0; i < 6; ++i) {
    pass(10s);
    ASSERT_EQ(renew(holder, who), RenewOutcome::renewed);
    ASSERT_FALSE(takes(other, {"k", "other:1"}));
  }
  EXPECT_EQ(holder.driver->release(who.claim(), soon()), ReleaseOutcome::released);
  letChangeComplete();
  EXPECT_EQ(stores(other), "new");
}

TEST_F(StateClock, AJumpForwardDoesNotHideAMemberThatHasJustComeBack) {
  options.maxTtl = ttl;
  decree("legacy");
  const Process other = join("legacy", "other:1");  // watches
  const Process holder = join("legacy", "holder:1");
  const Claimant who{"k", "holder:1"};
  ASSERT_TRUE(takes(holder, who));
  advance("modern");
  for (auto passed = 0s; passed <= options.lease + options.maxTtl; passed += 10s) {
    pass(10s);
    ASSERT_EQ(renew(holder, who), RenewOutcome::renewed);
  }
  // Until just before none of its locks can live any more.
  holder.records->down = true;
  pass(options.lease - 1s);
  ASSERT_EQ(renew(holder, who), RenewOutcome::renewed);
  pass(options.maxTtl - 2s);
  holder.records->down = false;
  other.records->down = true;
  pass(1s);
  ASSERT_EQ(renew(holder, who), RenewOutcome::renewed);
  holder.records->down = true;
  stateClock->advance(jump);
  other.records->down = false;
  pass(4s);
  EXPECT_EQ(stores(other), "old+new");
  EXPECT_EQ(renew(holder, who), RenewOutcome::renewed);
  EXPECT_FALSE(takes(other, {"k", "other:1"}));
}

TEST_F(StateClock, AfterAJumpForwardANewcomerWaitsForThoseItCannotHaveSeen) {
  decree("legacy");
  const Process holder = join("legacy", "holder:1");
  const Claimant who{"k", "holder:1"};
  ASSERT_TRUE(takes(holder, who));
  advance("modern");
  pass(2s);
  holder.records->down = true;
  stateClock->advance(jump);
  const Process newcomer = join("legacy", "newcomer:1");
  pass(5s);
  EXPECT_EQ(renew(holder, who), RenewOutcome::renewed);
  EXPECT_EQ(stores(newcomer), "old+new");
  EXPECT_FALSE(takes(newcomer, {"k", "newcomer:1"}));
  pass(options.lease + options.maxTtl - 8s);
  EXPECT_EQ(stores(newcomer), "old+new");
  pass(10s);
  EXPECT_EQ(stores(newcomer), "new");
}

TEST_F(StateClock, AJumpForwardDoesNotShortenTheObservationOfTheOldStore) {
  options.observation = 60s;
  decree("both");
  const Process process = join("both", "a:1");
  advance("modern");
  pass(50s);
  const Claimant outsider{"k", "unknown:7"};
  ASSERT_TRUE(std::holds_alternative<Granted>(oldStore->acquire({outsider.claim(), 30s, soon()})));
  EXPECT_FALSE(takes(process, {"k", "a:1"}));
  letChangeComplete();
  oldStore->release(outsider.claim(), soon());
  stateClock->advance(jump);
  pass(options.observation - 5s);
  EXPECT_EQ(stores(process), "old+new");
  pass(10s);
  EXPECT_EQ(stores(process), "new");
}

TEST_F(StateClock, AJumpBackDoesNotProlongAStep) {
  stateClock->advance(1h);
  decree("legacy");
  const Process process = join("legacy", "a:1");
  const Process dead = join("legacy", "dead:1");
  dead.records->down = true;
  advance("modern");
  pass(2s);
  stateClock->advance(-jump);
  pass(options.lease + options.maxTtl);
  EXPECT_EQ(stores(process), "new");
}

using WithoutATarget = Fleet;

// An earlier version has written rules by which each process goes its own way.
TEST_F(WithoutATarget, AProcessTakesBothStores) {
  for (const char* rules : {"1\nlegacy\n0", "1\nmodern\n0"}) {
    records->write(options.name, "rules", rules, std::nullopt, {}, soon());
    Process process = join("legacy", "a:1");
    EXPECT_EQ(stores(process), "old+new") << rules;
    end(process);
  }
}

}  // namespace
}  // namespace lockkeeper::migration
