#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <future>

#include "fleet_fixture.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/driver/inspection.h"

namespace lockkeeper::migration {
namespace {

class Pair : public Fleet {
 protected:
  Pair() {
    decree("both");
    process = join("both", "a:1");
  }

  Process process;
  const Claimant who{"k", "a:1"};
};

TEST_F(Pair, ListsTheLocksOfBothStoresAndAKeyOfBothOnce) {
  const Claimant legacy{"legacy", "b:1"}, modern{"modern", "c:1"};
  ASSERT_TRUE(std::holds_alternative<Granted>(oldStore->acquire({legacy.claim(), ttl, soon()})));
  ASSERT_TRUE(std::holds_alternative<Granted>(newStore->acquire({modern.claim(), ttl, soon()})));
  ASSERT_TRUE(takes(process, who));
  MigratingDriver driver(oldStore, newStore, records, options, {clock});
  auto* const browsable = capability<Browsable>(driver);
  ASSERT_NE(browsable, nullptr);
  std::vector<std::string> seen;
  const auto visit = [&](std::string_view key, const Holder& holder) {
    seen.push_back(std::string(key) + " " + holder.owner + (holder.fence ? " fenced" : ""));
    return true;
  };
  browsable->list("", visit, soon());
  std::ranges::sort(seen);
  EXPECT_EQ(seen, (std::vector<std::string>{"k a:1 fenced", "legacy b:1", "modern c:1 fenced"}));
  seen.clear();
  browsable->list(
      "", [&](std::string_view key, const Holder&) { return seen.emplace_back(key).empty(); }, soon());
  EXPECT_EQ(seen.size(), 1U) << "the visitor has ended it";
}

TEST_F(Pair, NothingStaysInTheOldStoreWhenTheNewOneIsBusy) {
  const Claimant modern{"k", "b:1"};
  ASSERT_TRUE(std::holds_alternative<Granted>(newStore->acquire({modern.claim(), ttl, soon()})));
  EXPECT_FALSE(takes(process, who));
  EXPECT_EQ(held("k"), "new");
}

TEST_F(Pair, NothingIsAskedOfTheNewStoreWhenTheOldOneIsBusy) {
  const Claimant legacy{"k", "b:1"};
  ASSERT_TRUE(std::holds_alternative<Granted>(oldStore->acquire({legacy.claim(), ttl, soon()})));
  const int before = process.newStore->calls(Call::acquire);
  EXPECT_FALSE(takes(process, who));
  EXPECT_EQ(process.newStore->calls(Call::acquire), before);
}

TEST_F(Pair, NothingStaysInTheOldStoreWhenTheNewOneIsDown) {
  process.newStore->fail(Call::acquire, {Fault::unavailable});
  EXPECT_THROW(takes(process, who), StoreUnavailable);
  EXPECT_EQ(held("k"), "");
}

TEST_F(Pair, SaysThatTheOutcomeIsUnknownWhenTheOldStoreCannotBeGivenBack) {
  process.newStore->fail(Call::acquire, {Fault::unavailable});
  process.oldStore->fail(Call::release, {Fault::unavailable});
  EXPECT_THROW(takes(process, who), OutcomeUnknown);
  EXPECT_EQ(process.driver->release(who.claim(), soon()), ReleaseOutcome::notOwner);
  EXPECT_EQ(held("k"), "");
}

TEST_F(Pair, AnUnknownOutcomeOfEitherIsResolvedByTheSameClaim) {
  for (FaultyDriver* store : {process.oldStore.get(), process.newStore.get()}) {
    for (const Fault fault : {Fault::requestLost, Fault::replyLost}) {
      const Claimant claim{"k", "a:1"};
      store->fail(Call::acquire, {fault});
      EXPECT_THROW(takes(process, claim), OutcomeUnknown);
      EXPECT_TRUE(std::holds_alternative<Granted>(ask(process, claim, true)));
      EXPECT_EQ(held("k"), "old+new");
      EXPECT_EQ(process.driver->release(claim.claim(), soon()), ReleaseOutcome::released);
      EXPECT_EQ(held("k"), "");
    }
  }
}

TEST_F(Pair, AClaimThatIsSentAgainAndBusyLeavesNothingInTheNewStore) {
  process.newStore->fail(Call::acquire, {Fault::replyLost});
  EXPECT_THROW(takes(process, who), OutcomeUnknown);
  oldStore->breakLock("k", soon());
  const Claimant legacy{"k", "b:1"};
  ASSERT_TRUE(std::holds_alternative<Granted>(oldStore->acquire({legacy.claim(), ttl, soon()})));
  EXPECT_TRUE(std::holds_alternative<Busy>(ask(process, who, true)));
  EXPECT_EQ(held("k"), "old");
}

TEST_F(Pair, ALossOfEitherIsALoss) {
  for (MemoryDriver* store : {oldStore.get(), newStore.get()}) {
    const Claimant claim{"k", "a:1"};
    ASSERT_TRUE(takes(process, claim));
    ASSERT_TRUE(store->breakLock("k", soon()));
    EXPECT_EQ(renew(process, claim), RenewOutcome::notOwner);
    EXPECT_EQ(process.driver->release(claim.claim(), soon()), ReleaseOutcome::notOwner);
    EXPECT_EQ(held("k"), "") << "what was left of it is gone, too";
  }
}

TEST_F(Pair, RenewsOnlyWhenBothHaveRenewed) {
  ASSERT_TRUE(takes(process, who));
  for (FaultyDriver* store : {process.oldStore.get(), process.newStore.get()}) {
    store->fail(Call::renew, {Fault::unavailable});
    EXPECT_EQ(renew(process, who), RenewOutcome::unavailable);
    store->fail(Call::renew, {Fault::replyLost});
    EXPECT_EQ(renew(process, who), RenewOutcome::unknown);
  }
  process.oldStore->fail(Call::renew, {Fault::uncertain});
  EXPECT_EQ(renew(process, who), RenewOutcome::ownerUnknown);
  EXPECT_EQ(renew(process, who), RenewOutcome::renewed);
}

TEST_F(Pair, CountsTheLeaseFromTheEarlierStore) {
  process.oldStore->onAcquired = [this] { clock->advance(100ms); };
  const Instant before = clock->now();
  const AcquireResult result = ask(process, who);
  // The probe that makes sure that there are two stores is over since the process joined.
  EXPECT_EQ(std::get<Granted>(result).leasedFrom, before);
  EXPECT_EQ(std::get<Granted>(result).leasedFor, ttl) << "to the earlier end";
}

TEST_F(Pair, TheProbeIsAskedForUnderTheNameOfTheKey) {
  for (const std::string& key : {std::string("order:5"), "order:" + std::string(506, 'x')}) {
    const Process another = start("both", "b:1");
    std::string probe;
    another.oldStore->onReleased = [&](std::string_view released) { probe = released; };
    ASSERT_TRUE(takes(another, {key, "b:1"}));
    EXPECT_TRUE(probe.starts_with("order:")) << probe;
    EXPECT_NE(probe.find(reservedMark), std::string::npos) << "it may be a lock of somebody's";
    EXPECT_LE(probe.size(), maxKeyBytes);
  }
}

TEST_F(Pair, CountsARenewedLeaseFromTheEarlierStore) {
  ASSERT_TRUE(takes(process, who));
  process.oldStore->hang(Call::renew);
  const Instant before = clock->now();
  Renewal renewal{.claim = who.claim(), .ttl = ttl};
  auto done = std::async(std::launch::async, [&] { process.driver->renew({&renewal, 1}, soon()); });
  process.oldStore->awaitHanging();
  clock->advance(100ms);
  process.oldStore->resume();
  done.get();
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed);
  EXPECT_EQ(renewal.leasedFrom, before);
}

/// A store whose leases begin before they are asked for, as Redlock's do by its drift.
class EarlyStore final : public PlainDecorator {
 public:
  using PlainDecorator::PlainDecorator;

  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = inner_->acquire(request);
    if (auto* granted = std::get_if<Granted>(&result)) granted->leasedFrom -= 1s;
    return result;
  }
  void renew(std::span<Renewal> renewals, Instant deadline) override {
    inner_->renew(renewals, deadline);
    for (Renewal& each : renewals) each.leasedFrom -= 1s;
  }
};

TEST_F(Pair, CountsTheLeaseFromTheNewStoreIfThatIsTheEarlierOne) {
  process.driver = std::make_shared<MigratingDriver>(oldStore, std::make_shared<EarlyStore>(newStore),
                                                     process.records, options, Environment{clock});
  EXPECT_EQ(std::get<Granted>(ask(process, who)).leasedFrom, clock->now() - 1s);
  Renewal renewal{.claim = who.claim(), .ttl = ttl};
  process.driver->renew({&renewal, 1}, soon());
  EXPECT_EQ(renewal.leasedFrom, clock->now() - 1s);
}

TEST_F(Pair, AReleaseThatHalfFailedIsUnknownAndCanBeSentAgain) {
  for (FaultyDriver* store : {process.oldStore.get(), process.newStore.get()}) {
    const Claimant claim{"k", "a:1"};
    ASSERT_TRUE(takes(process, claim));
    store->fail(Call::release, {Fault::unavailable});
    EXPECT_THROW(process.driver->release(claim.claim(), soon()), OutcomeUnknown);
    EXPECT_NO_THROW(process.driver->release(claim.claim(), soon()));
    EXPECT_EQ(held("k"), "");
  }
}

TEST_F(Pair, RefusesATtlThatTheMigrationDoesNotWaitFor) {
  try {
    (void)process.driver->acquire({who.claim(), 31s, soon()});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("31s"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("30s"), std::string::npos) << error.what();
  }
  EXPECT_EQ(held("k"), "");
}

TEST_F(Pair, NothingStaysInTheOldStoreWhenTheNewOneCannotGiveTheTtl) {
  process.newStore->fail(Call::acquire, {Fault::invalid});
  EXPECT_THROW(takes(process, who), std::invalid_argument);
  EXPECT_EQ(held("k"), "");
}

TEST_F(Pair, FindsOutThatTwoNamesAreOneStore) {
  const auto same = std::make_shared<FaultyDriver>(newStore);
  const MigratingDriver ontoItself(same, newStore, records, options, Environment{clock});
  ++hearts;
  const Claimant claim{"other", "c:1"};
  auto& driver = const_cast<MigratingDriver&>(ontoItself);
  EXPECT_THROW(driver.acquire({claim.claim(), ttl, soon()}), ConfigError);
  EXPECT_FALSE(newStore->holder("other", soon()));
  EXPECT_THROW(MigratingDriver(newStore, newStore, records, options, Environment{clock}),
               std::invalid_argument);
}

/// A store that cannot be looked into.
class Opaque final : public PlainDecorator {
 public:
  using PlainDecorator::PlainDecorator;

  std::optional<Holder> holder(std::string_view, Instant) override {
    throw StoreUnavailable("down, says the test");
  }
  std::string name() const override { return "opaque"; }
};

TEST_F(Pair, LooksForTwoStoresWithoutLeavingAnythingInTheOldOne) {
  const auto opaque = std::make_shared<Opaque>(newStore);
  MigratingDriver driver(oldStore, opaque, records, options,
                         Environment{clock, std::make_shared<FakeRandom>(7)});
  ++hearts;
  EXPECT_THROW(driver.acquire({who.claim(), ttl, soon()}), StoreUnavailable);
  std::vector<std::string> left;
  const auto note = [&](std::string_view key, const Holder&) { return left.emplace_back(key), true; };
  oldStore->list("", note, soon());
  EXPECT_EQ(left, std::vector<std::string>());
}

TEST_F(Pair, AForkedChildOwnsNothing) {
  ASSERT_TRUE(takes(process, who));
  const pid_t child = ::fork();
  if (child == 0) {
    int failures = 4;
    const auto refused = [&](auto call) {
      try {
        call();
      } catch (const ForkedError&) {
        --failures;
      }
    };
    refused([&] { (void)takes(process, {"other", "a:1"}); });
    refused([&] { (void)renew(process, who); });
    refused([&] { (void)process.driver->release(who.claim(), soon()); });
    refused([&] { (void)process.driver->holder("k", soon()); });
    process.driver.reset();  // must not wait for a thread that is not here
    ::_exit(failures);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(renew(process, who), RenewOutcome::renewed);
}

TEST_F(Pair, RefusesOptionsOutOfRange) {
  const auto refusal = [&](auto change) {
    MigrationOptions wrong = options;
    change(wrong);
    try {
      MigratingDriver(oldStore, newStore, records, wrong, Environment{clock});
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(refusal([](auto& o) { o.heartbeat = 1ms; }).find("heartbeat is 1ms"), std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.lease = 2s; }).find("lease is 2s: it must be 3s"), std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.maxTtl = 25h; }).find("maxTtl is 25h"), std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.name = "a b"; }).find("'a b'"), std::string::npos);
}

}  // namespace
}  // namespace lockkeeper::migration
