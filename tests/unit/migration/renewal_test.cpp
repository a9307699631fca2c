#include <array>
#include <functional>
#include <optional>

#include "fleet_fixture.h"

namespace lockkeeper::migration {
namespace {

/// A store whose renewals can be made to take time.
class SlowStore final : public PlainDecorator {
 public:
  using PlainDecorator::PlainDecorator;

  /// Runs before the renewals, and says whether they go through.
  std::function<bool(Instant deadline)> onRenew = [](Instant) { return true; };
  /// Runs when each has been told what became of it.
  std::function<void()> onTold = [] {};

  void renew(std::span<Renewal> renewals, Instant deadline) override {
    ++calls;
    if (!onRenew(deadline)) return;
    inner_->renew(renewals, deadline);
    for (const Renewal& each : renewals) {
      if (each.told) each.told(each);
    }
    onTold();
  }

  int calls = 0;
};

/// Locks of all phases that are due together.
class Renewals : public Fleet {
 protected:
  struct Told {
    RenewOutcome outcome;
    Instant at;
  };

  Renewals() {
    decree("legacy:* = legacy, modern:* = modern, * = both");
    process = join("both", "a:1");
    process.driver = std::make_shared<MigratingDriver>(
        slowOld, slowNew, process.records, options,
        Environment{clock, std::make_shared<FakeRandom>(99), process.notes});
    for (const Claimant* each : {&inOld, &inBoth, &inNew}) EXPECT_TRUE(takes(process, *each));
    EXPECT_TRUE(clock->awaitWaiters(hearts));
  }

  auto hangs() {
    return [this](Instant until) {
      clock->advance(until - clock->now());
      return false;
    };
  }

  /// What each was told, and when; the latest that it can be heard of is when all have come back.
  std::vector<Told> renew(std::initializer_list<const Claimant*> which) {
    std::vector<Renewal> renewals;
    std::vector<std::optional<Told>> told(which.size());
    for (const Claimant* each : which) {
      renewals.push_back({.claim = each->claim(), .ttl = ttl});
      renewals.back().told = [this, &its = told[renewals.size() - 1]](const Renewal& renewal) {
        EXPECT_FALSE(its) << "told twice";
        its = {renewal.outcome, clock->now()};
      };
    }
    process.driver->renew(renewals, deadline);
    std::vector<Told> result;
    for (std::size_t index = 0; index < renewals.size(); ++index) {
      result.push_back(told[index].value_or(Told{renewals[index].outcome, clock->now()}));
      EXPECT_EQ(result.back().outcome, renewals[index].outcome);
    }
    return result;
  }

  std::shared_ptr<SlowStore> slowOld = std::make_shared<SlowStore>(oldStore);
  std::shared_ptr<SlowStore> slowNew = std::make_shared<SlowStore>(newStore);
  Process process;
  const Claimant inOld{"legacy:k", "a:1"};
  const Claimant inBoth{"k", "a:1"};
  const Claimant inNew{"modern:k", "a:1"};
  const Instant start = clock->now();
  const Instant deadline = soon();
};

TEST_F(Renewals, AnOldStoreThatHangsHoldsUpNoneThatIsInTheNewStoreAlone) {
  slowOld->onRenew = hangs();
  const std::vector<Told> told = renew({&inBoth, &inNew});
  EXPECT_EQ(told[0].outcome, RenewOutcome::unknown);
  EXPECT_EQ(told[1].outcome, RenewOutcome::renewed);
  EXPECT_EQ(told[1].at, start);
}

TEST_F(Renewals, ANewStoreThatHangsLeavesTimeForThoseInTheOldStoreAlone) {
  slowNew->onRenew = hangs();
  const std::vector<Told> told = renew({&inBoth, &inNew, &inOld});
  EXPECT_EQ(told[0].outcome, RenewOutcome::unknown);
  EXPECT_EQ(told[1].outcome, RenewOutcome::unknown);
  EXPECT_EQ(told[2].outcome, RenewOutcome::renewed);
  EXPECT_EQ(told[2].at, start + (deadline - start) / 2);
}

TEST_F(Renewals, ANewStoreHasAllTheTimeWhenNoneIsInTheOldStoreAlone) {
  slowNew->onRenew = [&](Instant until) {
    EXPECT_EQ(until, deadline);
    return true;
  };
  for (const Told& told : renew({&inBoth, &inNew})) EXPECT_EQ(told.outcome, RenewOutcome::renewed);
}

TEST_F(Renewals, OneInBothStoresIsToldWhenBothHaveSaidSo) {
  slowNew->onTold = [&] { clock->advance(10ms); };
  slowOld->onTold = [&] { clock->advance(20ms); };
  const std::vector<Told> told = renew({&inOld, &inBoth, &inNew});
  for (const Told& each : told) EXPECT_EQ(each.outcome, RenewOutcome::renewed);
  EXPECT_EQ(told[0].at, start + 10ms) << "not before the old store was asked";
  EXPECT_EQ(told[1].at, start + 30ms);
  EXPECT_EQ(told[2].at, start);
  EXPECT_EQ(slowOld->calls, 1);
  EXPECT_EQ(slowNew->calls, 1);
}

TEST_F(Renewals, AStoreThatThrowsSpoilsNothingInTheOther) {
  slowNew->onRenew = [](Instant) -> bool { throw std::runtime_error("broken, says the test"); };
  std::vector<Told> told = renew({&inOld, &inNew});
  EXPECT_EQ(told[0].outcome, RenewOutcome::renewed);
  EXPECT_EQ(told[1].outcome, RenewOutcome::unknown);
  std::swap(slowNew->onRenew, slowOld->onRenew);
  told = renew({&inOld, &inNew});
  EXPECT_EQ(told[0].outcome, RenewOutcome::unknown);
  EXPECT_EQ(told[1].outcome, RenewOutcome::renewed);
}

TEST_F(Renewals, NoneInASingleStoreIsLeasedForLongerThanItsMembersRecordIsKept) {
  const Claimant other{"modern:other", "a:1"};
  EXPECT_TRUE(takes(process, other));
  const auto renewalOf = [](const Claimant& who, std::chrono::milliseconds length) {
    return Renewal{.claim = who.claim(), .ttl = length};
  };
  std::array all = {renewalOf(inOld, 1h), renewalOf(inBoth, 1h), renewalOf(inNew, 1h), renewalOf(other, ttl)};
  process.driver->renew(all, deadline);
  for (const Renewal* each : {&all[0], &all[2]}) {
    EXPECT_EQ(each->outcome, RenewOutcome::unavailable);
    EXPECT_EQ(each->cause, "ttl is 1h: during the migration at most 30s (maxTtl) is allowed");
  }
  EXPECT_EQ(newStore->holder("modern:k", deadline)->remaining, ttl);
  EXPECT_EQ(all[1].outcome, RenewOutcome::renewed) << "it is excluded in every phase";
  EXPECT_EQ(all[3].outcome, RenewOutcome::renewed);
}

/// A store that leases for longer than it was asked to.
class GenerousStore final : public PlainDecorator {
 public:
  using PlainDecorator::PlainDecorator;

  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = inner_->acquire(request);
    if (auto* granted = std::get_if<Granted>(&result)) granted->leasedFor = 1h;
    return result;
  }
  void renew(std::span<Renewal> renewals, Instant deadline) override {
    inner_->renew(renewals, deadline);
    for (Renewal& each : renewals) each.leasedFor = 1h;
  }
};

TEST_F(Renewals, ALeaseInASingleStoreEndsAfterMaxTtlEvenIfTheStoreGivesMore) {
  process.driver = std::make_shared<MigratingDriver>(
      slowOld, std::make_shared<GenerousStore>(newStore), process.records, options,
      Environment{clock, std::make_shared<FakeRandom>(98), process.notes});
  const Claimant who{"modern:other", "a:1"};
  const AcquireResult result = ask(process, who);
  EXPECT_EQ(std::get<Granted>(result).leasedFor, options.maxTtl);
  Renewal renewal{.claim = who.claim(), .ttl = ttl};
  process.driver->renew({&renewal, 1}, deadline);
  EXPECT_EQ(renewal.outcome, RenewOutcome::renewed);
  EXPECT_EQ(renewal.leasedFor, options.maxTtl);
}

TEST_F(Renewals, OneThatWasSentAfterTheLeaseIsNotToldAsRenewed) {
  slowNew->onRenew = [&](Instant) {
    // As in a process that is stopped between its decision and its request.
    process.records->down = true;
    pass(options.lease + 1s);
    return true;
  };
  EXPECT_EQ(renew({&inNew})[0].outcome, RenewOutcome::unknown);
}

}  // namespace
}  // namespace lockkeeper::migration
