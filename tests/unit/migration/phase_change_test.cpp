#include "fleet_fixture.h"

namespace lockkeeper::migration {
namespace {

using PhaseChange = Fleet;

TEST_F(PhaseChange, EachPhaseTakesItsStores) {
  decree("old:* = legacy, new:* = modern, * = both");
  const Process process = join("legacy", "a:1");
  EXPECT_EQ(stores(process, {"old:1", "a:1"}), "old");
  EXPECT_EQ(stores(process, {"any", "a:1"}), "old+new");
  EXPECT_EQ(stores(process, {"new:1", "a:1"}), "new");
}

TEST_F(PhaseChange, AnEmptyStateStartsEverybodyInBoth) {
  const Process process = join("legacy", "a:1");
  EXPECT_EQ(stores(process), "old+new");
  pass(options.lease + options.maxTtl - 2s);
  EXPECT_EQ(stores(process), "old+new") << "a lock that was taken before may still live";
  pass(4s);
  EXPECT_EQ(stores(process), "old");
}

TEST_F(PhaseChange, FollowsAChangedRuleWithinOneHeartbeat) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  EXPECT_EQ(stores(process), "old");
  advance("both");
  pass(1s);
  EXPECT_EQ(stores(process), "old+new");
}

TEST_F(PhaseChange, TellsTheListenerOnceOfEachSetOfRulesInForce) {
  options.observation = 0s;
  decree("legacy");
  const Process process = join("legacy", "a:1");
  advance("modern");
  pass(options.lease + options.maxTtl + 2s);
  EXPECT_EQ(process.notes->rules(), (std::vector<std::string>{"* = legacy", "* = both", "* = modern"}));
}

TEST_F(PhaseChange, TellsTheOthersAtOnceThatItFollows) {
  decree("legacy");
  const Process process = join("legacy", "a:1");
  advance("both");
  pass(1s);
  const MigrationState state = stateStore.read(soon());
  ASSERT_EQ(state.members.size(), 1U);
  EXPECT_EQ(state.members[0].version, state.version) << "a heartbeat later it would hold the others up";
}

TEST_F(PhaseChange, PassesThroughBothAndWaitsForTheLongestLock) {
  options.observation = 0s;
  decree("legacy");
  const Process process = join("legacy", "a:1");
  advance("modern");
  pass(options.lease + options.maxTtl - 2s);
  EXPECT_EQ(stores(process), "old+new");
  pass(4s);
  EXPECT_EQ(stores(process), "new");
}

TEST_F(PhaseChange, FollowsWhatIsWrittenWhateverItIsConfiguredForAndSaysSoOnceAtItsStart) {
  const Process first = join("both", "first:1");
  const Process second = join("legacy", "second:1");
  EXPECT_EQ(stateStore.read(soon()).target, Rules(Phase::both)) << "nobody had written any rules";
  pass(5min);
  EXPECT_EQ(stores(first), "old+new");
  EXPECT_EQ(stores(second), "old+new");
  EXPECT_FALSE(first.notes->mention("is configured for")) << first.notes->all();
  const std::string said =
      "is configured for '* = legacy', but follows the rules that are written, '* = both'";
  const std::string all = second.notes->all();
  EXPECT_NE(all.find(said), std::string::npos) << all;
  EXPECT_EQ(all.find(said), all.rfind(said)) << all;
  advance("legacy");
  pass(1min);
  EXPECT_EQ(stores(first), "old") << "an operator changes it";
}

TEST_F(PhaseChange, LocksThatAreHeldKeepTheirPhaseAndHoldUpTheNextStep) {
  options.observation = 0s;
  decree("legacy");
  const Process holder = join("legacy", "a:1");
  const Process other = join("legacy", "b:1");
  const Claimant who{"k", "a:1"};
  ASSERT_TRUE(takes(holder, who));
  advance("modern");
  for (int i = 0; i < 20; ++i) {
    pass(10s);
    ASSERT_EQ(renew(holder, who), RenewOutcome::renewed);
    ASSERT_EQ(held("k"), "old");
    ASSERT_FALSE(takes(other, {"k", "b:1"}));
    ASSERT_EQ(stores(other), "old+new");
  }
  EXPECT_TRUE(holder.notes->mention("a:1 still holds locks in the phase that is left"))
      << holder.notes->all();
  EXPECT_EQ(holder.driver->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_EQ(held("k"), "");
  letChangeComplete();
  EXPECT_EQ(stores(other), "new");
  EXPECT_EQ(stores(holder), "new");
}

TEST_F(PhaseChange, AHolderThatIsNoMemberKeepsItsKeysFromBecomingModern) {
  decree("both");
  const Process process = join("both", "a:1");
  advance("modern");
  const Claimant outsider{"k", "unknown:7"};
  ASSERT_TRUE(std::holds_alternative<Granted>(oldStore->acquire({outsider.claim(), 30s, soon()})));
  EXPECT_FALSE(takes(process, {"k", "a:1"}));
  letChangeComplete();
  oldStore->release(outsider.claim(), soon());
  pass(options.observation - 5s);
  EXPECT_EQ(stores(process), "old+new");
  EXPECT_TRUE(process.notes->mention("a holder that is no member was seen in the old store, of 'k'"))
      << process.notes->all();
  pass(10s);
  EXPECT_EQ(stores(process), "new");
}

TEST_F(PhaseChange, AnOutsiderThatNobodyRunsIntoIsFoundBeforeTheLastStep) {
  decree("both");
  Process process = start("both", "a:1");
  // Without a decorator around it, the old store can be listed.
  process.driver =
      std::make_shared<MigratingDriver>(oldStore, newStore, process.records, options,
                                        Environment{clock, std::make_shared<FakeRandom>(77), process.notes});
  ++hearts;
  EXPECT_EQ(stores(process), "old+new");
  advance("modern");
  const Claimant outsider{"k", ""};
  ASSERT_TRUE(std::holds_alternative<Granted>(oldStore->acquire({outsider.claim(), 10min, soon()})));
  pass(5min);
  EXPECT_EQ(stores(process), "old+new");
  EXPECT_TRUE(stateStore.read(soon()).inTheWay.has_value());
  oldStore->release(outsider.claim(), soon());
  pass(options.observation + 5s);
  EXPECT_EQ(stores(process), "new");
}

TEST_F(PhaseChange, WhoTakesNoPartIsAnOutsiderEvenUnderTheLabelOfAMember) {
  decree("both");
  const Process process = join("both", "node7:1");
  advance("modern");
  pass(options.observation / 2);
  const Claimant outsider{"k", "node7:1"};
  ASSERT_TRUE(std::holds_alternative<Granted>(oldStore->acquire({outsider.claim(), 30s, soon()})));
  EXPECT_FALSE(takes(process, {"k", "node7:1"}));
  letChangeComplete();
  oldStore->release(outsider.claim(), soon());
  pass(options.observation - 5s);
  EXPECT_EQ(stores(process), "old+new");
  pass(10s);
  EXPECT_EQ(stores(process), "new");
}

TEST_F(PhaseChange, AHolderIsShownUnderItsOwnLabelInEachPhase) {
  decree("old:* = legacy, new:* = modern, * = both");
  const Process process = join("both", "a:1");
  for (const std::string key : {"old:1", "any", "new:1"}) {
    const Claimant who{key, "a:1"};
    ASSERT_TRUE(takes(process, who)) << key;
    EXPECT_EQ(process.driver->holder(key, soon())->owner, "a:1") << key;
    EXPECT_EQ(renew(process, who), RenewOutcome::renewed) << key;
  }
  EXPECT_EQ(stateStore.read(soon()).members.at(0).name(), "a:1");
}

TEST_F(PhaseChange, AMembersLabelIsMarkedInTheOldStoreHoweverLongItIs) {
  decree("legacy");
  const std::string longest(64, 'x');
  for (const std::string& label : {longest.substr(1), longest}) {
    const Process process = join("legacy", label);
    const Claimant who{label, label};
    ASSERT_TRUE(takes(process, who));
    const std::string owner = oldStore->holder(who.key, soon())->owner;
    EXPECT_NE(owner, label);
    EXPECT_LE(owner.size(), longest.size());
    EXPECT_TRUE(stateStore.read(soon()).knows(owner));
    EXPECT_EQ(process.driver->holder(who.key, soon())->owner, label);
    --hearts;
  }
}

TEST_F(PhaseChange, AMemberThatHasLeftIsNoOutsider) {
  decree("both");
  const Process process = join("both", "a:1");
  Process shortLived = join("both", "b:1");
  advance("modern");
  const Claimant who{"k", "b:1"};
  ASSERT_TRUE(takes(shortLived, who));
  EXPECT_FALSE(takes(process, {"k", "a:1"})) << "and looks whose it is";
  EXPECT_EQ(shortLived.driver->release(who.claim(), soon()), ReleaseOutcome::released);
  end(shortLived);
  EXPECT_TRUE(stateStore.read(soon()).knows("b:1~"));
  letChangeComplete();
  EXPECT_FALSE(stateStore.read(soon()).sighting.has_value());
  pass(options.lease);
  EXPECT_FALSE(stateStore.read(soon()).knows("b:1~")) << "nothing of it stays";
}

TEST_F(PhaseChange, AMemberThatJoinsWhileTheOldStoreIsLookedThroughIsNoOutsider) {
  decree("both");
  Process process = start("both", "a:1");
  const auto store = std::make_shared<LookedThrough>(oldStore);
  const Claimant late{"k", "late:1"};
  std::atomic<int> looks{0};
  store->before = [&] {
    if (++looks > 1) return;
    Member member = stateStore.read(soon()).members.at(0);
    member.id = "late";
    member.labels = {late.label};
    MigrationState known;
    stateStore.heartbeat(member, known, soon());
    (void)oldStore->acquire({late.claim(), ttl, soon()});
  };
  process.driver =
      std::make_shared<MigratingDriver>(store, newStore, process.records, options,
                                        Environment{clock, std::make_shared<FakeRandom>(78), process.notes});
  ++hearts;
  EXPECT_EQ(stores(process), "old+new");
  advance("modern");
  letChangeComplete();
  EXPECT_GT(looks, 0);
  EXPECT_FALSE(stateStore.read(soon()).sighting.has_value());
}

TEST_F(PhaseChange, ASilentMemberHoldsUpTheNextStepUntilItsLocksHaveEnded) {
  options.observation = 0s;
  decree("legacy");
  const Process process = join("legacy", "a:1");
  Process dead = join("legacy", "dead:1");
  dead.records->down = true;
  advance("modern");
  pass(options.lease + options.maxTtl - 3s);
  EXPECT_EQ(stores(process), "old+new");
  EXPECT_TRUE(process.notes->mention("dead:1, which has fallen silent,")) << process.notes->all();
  pass(6s);
  EXPECT_EQ(stores(process), "new");
}

TEST_F(PhaseChange, AClaimThatIsSentAgainMuchLaterTakesThePresentPhase) {
  options.observation = 0s;
  decree("legacy");
  const Process process = join("legacy", "a:1");
  const Claimant who{"k", "a:1"};
  process.oldStore->fail(Call::acquire, {Fault::requestLost});
  EXPECT_THROW(takes(process, who), OutcomeUnknown);
  advance("modern");
  pass(1min);
  EXPECT_EQ(stores(process), "new");
  EXPECT_TRUE(std::holds_alternative<Granted>(ask(process, who, true)));
  EXPECT_EQ(held("k"), "new") << "nobody waits for its old phase any more";
}

TEST_F(PhaseChange, AClaimWhoseOutcomeIsNotKnownHoldsUpTheNextStep) {
  options.observation = 0s;
  decree("legacy");
  const Process process = join("legacy", "a:1");
  const Claimant who{"k", "a:1"};
  advance("both");
  pass(1min);
  advance("legacy");
  pass(1min);
  process.oldStore->fail(Call::acquire, {Fault::replyLost});
  EXPECT_THROW(takes(process, who), OutcomeUnknown);
  letChangeComplete();
  EXPECT_TRUE(std::holds_alternative<Granted>(ask(process, who, true)));
  advance("modern");
  for (int i = 0; i < 6; ++i) {
    pass(10s);
    ASSERT_EQ(renew(process, who), RenewOutcome::renewed);
  }
  EXPECT_EQ(stores(process), "old+new");
}

TEST_F(PhaseChange, GoesBackTheSameWay) {
  options.observation = 0s;
  decree("modern");
  const Process process = join("modern", "a:1");
  EXPECT_EQ(stores(process), "new");
  advance("both");
  pass(1min);
  EXPECT_EQ(stores(process), "old+new");
  advance("legacy");
  pass(1min);
  EXPECT_EQ(stores(process), "old");
}

TEST_F(PhaseChange, AnOperatorMayThinkAgainAtAnyTime) {
  options.observation = 0s;
  decree("legacy");
  const Process process = join("legacy", "a:1");
  advance("modern");
  pass(5s);
  EXPECT_EQ(stores(process), "old+new");
  advance("legacy");
  pass(1s);
  EXPECT_EQ(stores(process), "old") << "nobody can have left the old store yet";
}

TEST_F(PhaseChange, FencesComeFromTheNewStoreAndNeverGoBack) {
  options.observation = 0s;
  decree("legacy");
  const Process process = join("legacy", "a:1");
  EXPECT_EQ(process.driver->promises().fence, FencePromise::none);
  const auto fence = [&] {
    const Claimant who{"k", "a:1"};
    const AcquireResult result = ask(process, who);
    process.driver->release(who.claim(), soon());
    return std::get<Granted>(result).fence;
  };
  EXPECT_FALSE(fence());
  Fence highest = 0;
  for (const char* phase : {"both", "modern", "both", "modern"}) {
    advance(phase);
    pass(1min);
    const auto next = fence();
    ASSERT_TRUE(next) << phase;
    EXPECT_GT(*next, highest) << phase;
    highest = *next;
  }
  EXPECT_EQ(process.driver->promises().fence, FencePromise::whileStoreKeepsWrites);
}

TEST_F(PhaseChange, LeavesTheMigrationWhenItEnds) {
  decree("legacy");
  Process process = join("legacy", "a:1");
  EXPECT_EQ(stateStore.read(soon()).members.size(), 1U);
  end(process);
  EXPECT_TRUE(stateStore.read(soon()).members.empty());
}

}  // namespace
}  // namespace lockkeeper::migration
