#include "lockkeeper/schedule/scheduled_task.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <utility>

#include "lock/manager_fixture.h"
#include "moment.h"
#include "schedule/tick_loop.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;
using lockkeeper::testing::FakeRandom;
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

/// The clock of one machine: its wall clock is ahead of the right time.
class MachineClock final : public Clock {
 public:
  MachineClock(std::shared_ptr<FakeClock> right, milliseconds ahead)
      : right_(std::move(right)), ahead_(ahead) {}

  Instant now() const noexcept override { return right_->now(); }
  WallTime wallNow() const noexcept override { return right_->wallNow() + ahead_; }
  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    right_->wait(held, wakeUp, until);
  }

 private:
  const std::shared_ptr<FakeClock> right_;
  const milliseconds ahead_;
};

class World;

/// A machine with a process that has the task. Its loop moves only when the world says so.
class Machine {
 public:
  Machine(World& world, const Schedule& schedule, milliseconds ahead, ScheduleOptions options);

  void step() {
    if (!working && !asleep) loop->step();
  }

  World& world;
  const std::shared_ptr<MachineClock> clock;
  const std::shared_ptr<FaultyDriver> network;
  std::chrono::nanoseconds next{};    ///< Until the tick that was planned last.
  std::vector<TaskOutcome> outcomes;  // by this machine's one thread
  std::vector<std::string> reasons;   // with what was missed or failed
  const std::shared_ptr<LockManager> manager;
  const std::shared_ptr<detail::TickLoop> loop;
  bool working = false;
  bool asleep = false;  // or killed
};

/// Machines on one store, and virtual time. All in one thread: while the work of one machine lets time pass,
/// the others go on.
class World {
 public:
  struct Run {
    std::string at;    ///< By the right clock.
    std::string tick;  ///< The full minute, by the machine's own clock.
    std::size_t machine;
  };

  explicit World(const char* now) { clock->setWallClock(moment(now)); }

  Machine& start(const Schedule& schedule, milliseconds ahead = 0s, ScheduleOptions options = {}) {
    machines.push_back(std::make_unique<Machine>(*this, schedule, ahead, options));
    return *machines.back();
  }

  void pass(seconds length, seconds pace = 1s) {
    for (; length > 0s; length -= pace) {
      clock->advance(pace);
      for (const auto& machine : machines) machine->step();
    }
  }
  bool holdsAny() const {
    bool any = false;
    store->list(
        "", [&](auto, auto&) { return !(any = true); }, Instant::max());
    return any;
  }
  /// Returns when a manager has given back what a claim of this key has taken whose reply was lost.
  void awaitFree(const std::string& key) const {
    while (store->holder(key, Instant::max())) clock->advance(1ms);
  }
  /// Nobody is awake meanwhile.
  void leap(seconds length) const { clock->advance(length); }
  void leapTo(const char* when) const { clock->advance(moment(when) - clock->wallNow()); }

  void work(Machine& machine, const Lock& lock, const std::stop_token& stop) {
    const auto index = static_cast<std::size_t>(
        std::ranges::find(machines, &machine, [](const auto& each) { return each.get(); }) -
        machines.begin());
    runs.push_back({text(std::chrono::floor<seconds>(clock->wallNow())),
                    text(std::chrono::floor<std::chrono::minutes>(machine.clock->wallNow())), index});
    machine.working = true;
    EXPECT_EQ(++working, 1) << "two at once";
    job(machine, lock, stop);
    --working;
    machine.working = false;
  }

  std::vector<std::string> starts() const {
    std::vector<std::string> all;
    for (const Run& run : runs) all.push_back(run.at);
    return all;
  }

  const std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
  const std::shared_ptr<MemoryDriver> store = std::make_shared<MemoryDriver>(clock);
  std::function<void(Machine&, const Lock&, std::stop_token)> job = [](auto&, auto&, auto) {};
  std::vector<Run> runs;
  int working = 0;
  std::vector<std::unique_ptr<Machine>> machines;
};

Machine::Machine(World& in, const Schedule& schedule, milliseconds ahead, ScheduleOptions options)
    : world(in),
      clock(std::make_shared<MachineClock>(in.clock, ahead)),
      network(std::make_shared<FaultyDriver>(in.store)),
      manager([&] {
        ManagerOptions made;
        made.environment = {clock, std::make_shared<FakeRandom>(in.machines.size()),
                            std::make_shared<Hearing>([this](const Event& event) {
                              if (event.kind == EventKind::taskPlanned) next = event.remaining;
                              if (event.kind != EventKind::taskEnded) return;
                              EXPECT_EQ(event.key, "report");
                              outcomes.push_back(event.task);
                              if (!event.text.empty()) reasons.emplace_back(event.text);
                            })};
        return std::make_shared<LockManager>(network, made);
      }()),
      loop(std::make_shared<detail::TickLoop>(
          // One lease of an hour, so that no renewal is needed while the work lets time pass.
          std::make_shared<ExclusiveTask>(
              manager, TaskOptions{.name = "report", .atMost = 1h, .ttl = 1h},
              [this](const Lock& lock, std::stop_token stop) { world.work(*this, lock, stop); }),
          schedule, options)) {}

using Outcomes = std::vector<TaskOutcome>;
constexpr auto done = TaskOutcome::done;
constexpr auto skipped = TaskOutcome::skipped;
constexpr auto missed = TaskOutcome::missed;

TEST(ScheduledTaskTest, OneOfTenMachinesRunsEachTickThoughTheyStartedAtOtherTimes) {
  World world("2026-03-27 00:30:00");
  const auto nightly = Schedule::cron("30 2 * * *", TimeZone::named("Europe/Berlin"));
  for (int machine = 0; machine < 10; ++machine) {
    world.start(nightly, milliseconds{(machine * 7 % 10 - 5) * 3000});
    world.pass(101s);
  }
  world.pass(std::chrono::hours{3 * 24 + 12}, 10s);
  std::vector<std::string> ticks;
  for (const auto& run : world.runs) ticks.push_back(run.tick);
  EXPECT_THAT(ticks, ElementsAre("2026-03-27 01:30:00", "2026-03-28 01:30:00", "2026-03-29 01:00:00",
                                 "2026-03-30 00:30:00"));
  for (const auto& machine : world.machines) {
    EXPECT_EQ(machine->outcomes.size(), 4U) << "each goes on to the next tick";
    EXPECT_THAT(machine->reasons, ElementsAre());
  }
}

TEST(ScheduledTaskTest, TheListenerIsToldWhenTheNextTickComesAlreadyWhileTheWorkRuns) {
  World world("2026-01-01 00:30:00");
  Machine& machine = world.start(Schedule::every(1h));
  EXPECT_EQ(machine.next, 30min);
  std::chrono::nanoseconds during{};
  world.job = [&](Machine& worker, auto&, auto) { during = worker.next; };
  world.pass(1800s);
  EXPECT_EQ(world.runs.size(), 1U);
  EXPECT_EQ(during, 1h);
}

TEST(ScheduledTaskTest, AMachineWhoseClockIsLateFindsTheTickDoneHoweverLateItComes) {
  World world("2026-01-01 00:30:00");
  world.start(Schedule::every(1h));
  Machine& late = world.start(Schedule::every(1h), -30s);
  world.pass(1799s);
  late.asleep = true;
  world.pass(90s);  // by its own clock it is 59 s late now, and nearly too late
  late.asleep = false;
  world.pass(3600s);
  EXPECT_THAT(world.starts(), ElementsAre("2026-01-01 01:00:00", "2026-01-01 02:00:00"));
  EXPECT_EQ(late.outcomes, (Outcomes{skipped, skipped}));
}

TEST(ScheduledTaskTest, AMachineThatStartsRightAfterATickDoesNotRunItAgain) {
  for (const milliseconds ahead : {-30s, -1s, 0s, 30s}) {
    for (const Missed policy : {Missed::skip, Missed::once}) {
      World world("2026-01-01 00:59:50");
      world.start(Schedule::every(1h), 0s, {.missed = policy});
      world.pass(11s);
      ASSERT_EQ(world.runs.size(), policy == Missed::once ? 2U : 1U);  // once: that of 00:00, too
      world.runs.clear();
      world.start(Schedule::every(1h), ahead, {.missed = policy});
      world.pass(3500s);
      EXPECT_THAT(world.runs, ElementsAre()) << ahead.count();
    }
  }
}

TEST(ScheduledTaskTest, EachTickOfAShortPeriodIsRunOnceThoughClocksAreFurtherApartThanThat) {
  const auto eachMinute = Schedule::every(1min);
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto upTo = [&](int most) { return std::uniform_int_distribution(0, most)(random); };
    World world("2026-01-01 00:00:30");
    world.job = [&](auto&, auto&, auto) { world.pass(seconds{upTo(20)}); };
    const ScheduleOptions options{.clockSkew = 150s};
    const auto start = [&] { world.start(eachMinute, milliseconds{upTo(150'000) - 75'000}, options); };
    start();
    for (int tick = 0; tick < 20; ++tick) {
      if (tick < 5) start();
      world.pass(seconds{upTo(60)});
    }
    world.pass(200s);
    std::map<std::string, int> runsOf;
    for (const auto& run : world.runs) ++runsOf[run.tick];
    for (const auto& [tick, runs] : runsOf) EXPECT_EQ(runs, 1) << tick;
    const auto first = moment(runsOf.begin()->first);
    const auto last = moment(runsOf.rbegin()->first);
    const auto lost = static_cast<std::size_t>((last - first) / 1min + 1) - runsOf.size();
    // A tick is lost only to a run that went on, and then the one that claimed it tells.
    std::size_t told = 0;
    for (const auto& machine : world.machines) {
      told += static_cast<std::size_t>(std::ranges::count(machine->outcomes, missed));
      for (const auto& reason : machine->reasons)
        EXPECT_EQ(reason.find("awake"), std::string::npos) << reason;
    }
    EXPECT_LE(lost, told);
  }
}

TEST(ScheduledTaskTest, ARunLongerThanThePeriodSkipsTheNextTicksAndIsNeverDoubled) {
  World world("2026-01-01 00:59:59");
  const auto hourly = Schedule::every(20min);
  Machine& first = world.start(hourly);
  Machine& second = world.start(hourly);
  world.job = [&](Machine& machine, auto&, auto) {
    if (&machine == &first && world.runs.size() == 1) world.pass(50min);
  };
  world.pass(1s);
  EXPECT_THAT(world.starts(), ElementsAre("2026-01-01 01:00:00"));
  EXPECT_EQ(second.outcomes, (Outcomes{skipped, missed, missed}));
  EXPECT_THAT(second.reasons, ElementsAre("the tick of 2026-01-01T01:20:00Z: another run goes on",
                                          "the tick of 2026-01-01T01:40:00Z: another run goes on"));
  EXPECT_EQ(first.outcomes, (Outcomes{done, missed}));
  EXPECT_THAT(first.reasons, ElementsAre("the tick of 2026-01-01T01:20:00Z: a run of this process went on"));
  world.pass(10min);
  EXPECT_THAT(world.starts(), ElementsAre("2026-01-01 01:00:00", "2026-01-01 02:00:00"));
}

TEST(ScheduledTaskTest, ATickWhoseHolderDiesIsNotRunAgainAndTheNextOneIs) {
  for (const Missed policy : {Missed::skip, Missed::once}) {
    World world("2026-01-01 00:59:59");
    const auto schedule = Schedule::every(2h);
    world.start(schedule, 0s, {.missed = policy});
    world.start(schedule, -10s, {.missed = policy});
    world.runs.clear();
    world.pass(3590s);
    world.runs.clear();
    world.job = [&](Machine& machine, auto&, auto) {
      if (&machine != world.machines.front().get()) return;
      machine.asleep = true;  // for ever
      machine.network->failAlways(Call::renew, Fault::unavailable);
      machine.network->failAlways(Call::release, Fault::unavailable);
    };
    world.pass(20s);
    ASSERT_EQ(world.starts(), std::vector<std::string>{"2026-01-01 02:00:00"});
    world.pass(std::chrono::hours{3});
    EXPECT_THAT(world.starts(), ElementsAre("2026-01-01 02:00:00", "2026-01-01 04:00:10"));
    EXPECT_EQ(world.runs.back().machine, 1U);
  }
}

TEST(ScheduledTaskTest, WorkThatThrowsIsToldAndTheNextTickComes) {
  World world("2026-01-01 00:59:59");
  Machine& machine = world.start(Schedule::every(1h));
  Machine& other = world.start(Schedule::every(1h), -5s);
  world.job = [&](Machine& at, auto&, auto) {
    --world.working;
    at.working = false;
    throw std::runtime_error("no paper");
  };
  world.pass(3700s);
  EXPECT_THAT(world.starts(), ElementsAre("2026-01-01 01:00:00", "2026-01-01 02:00:00"));
  EXPECT_EQ(machine.outcomes, (Outcomes{TaskOutcome::threw, TaskOutcome::threw}));
  EXPECT_THAT(machine.reasons, ElementsAre("no paper", "no paper"));
  EXPECT_EQ(other.outcomes, (Outcomes{skipped, skipped}));
}

TEST(ScheduledTaskTest, AMachineWithoutItsStoreLeavesTheTickToOthers) {
  World world("2026-01-01 00:59:59");
  Machine& cutOff = world.start(Schedule::every(1h));
  world.start(Schedule::every(1h));
  cutOff.network->fail(Call::acquire, {Fault::unavailable});
  world.pass(3700s);
  EXPECT_EQ(world.runs.size(), 2U);
  EXPECT_EQ(world.runs.front().machine, 1U);
  EXPECT_EQ(cutOff.outcomes, (Outcomes{TaskOutcome::storeFailed, skipped, done}));
}

TEST(ScheduledTaskTest, AStoreThatIsDownAtATickIsAskedAgainAsLongAsTheTickIsInTime) {
  for (const Fault fault : {Fault::unavailable, Fault::requestLost, Fault::replyLost}) {
    World world("2026-01-01 00:59:59");
    std::vector<Machine*> machines;
    for (int i = 0; i < 3; ++i) machines.push_back(&world.start(Schedule::every(1h)));
    for (Machine* each : machines) each->network->failAlways(Call::acquire, fault);
    if (fault == Fault::replyLost) {
      for (Machine* each : machines) each->network->failAlways(Call::release, Fault::unavailable);
    }
    world.pass(30s);
    EXPECT_THAT(world.runs, ElementsAre());
    for (Machine* each : machines) {
      EXPECT_EQ(each->outcomes.front(), TaskOutcome::storeFailed);
      EXPECT_LE(each->network->calls(Call::acquire), 2 * 7) << "more and more seldom";
      each->network->heal();
    }
    // Their managers give back what a claim has taken whose reply was lost.
    while (world.holdsAny()) world.clock->advance(1ms);
    world.pass(30s);
    EXPECT_EQ(world.runs.size(), 1U) << static_cast<int>(fault);
    world.pass(3600s);
    EXPECT_EQ(world.runs.size(), 2U);
  }
}

TEST(ScheduledTaskTest, AStoreThatFailsBetweenTheTickAndTheTaskIsAskedAgainByWhoHasTheTick) {
  for (const Missed policy : {Missed::skip, Missed::once}) {
    for (const Fault fault : {Fault::unavailable, Fault::requestLost, Fault::replyLost}) {
      SCOPED_TRACE(static_cast<int>(fault));
      World world("2026-01-01 00:59:59");
      Machine& machine = world.start(Schedule::every(1h), 0s, {.missed = policy});
      Machine& other = world.start(Schedule::every(1h), -5s, {.missed = policy});
      if (policy == Missed::once) world.pass(1s, 1s);
      world.runs.clear();
      machine.outcomes.clear();
      if (policy == Missed::once) world.leapTo("2026-01-01 01:59:59");
      int claims = 0;
      machine.network->onAcquired = [&] {
        if (++claims == 1) machine.network->fail(Call::acquire, {fault, fault});
      };
      world.pass(1s);
      EXPECT_THAT(world.runs, ElementsAre());
      EXPECT_EQ(machine.outcomes, (Outcomes{TaskOutcome::storeFailed}));
      world.awaitFree("report");
      world.pass(20s);
      ASSERT_EQ(world.runs.size(), 1U);
      EXPECT_EQ(world.runs.front().machine, 0U);
      EXPECT_EQ(machine.outcomes, (Outcomes{TaskOutcome::storeFailed, done}));
      EXPECT_EQ(other.outcomes.back(), skipped);
      world.pass(3600s, 5s);
      EXPECT_EQ(world.runs.size(), 2U) << "the next tick comes";
    }
  }
}

TEST(ScheduledTaskTest, AStoreThatFailsTooLongBetweenTheTickAndTheTaskIsAMissedTick) {
  World world("2026-01-01 00:59:59");
  Machine& machine = world.start(Schedule::every(1h));
  machine.network->onAcquired = [&] { machine.network->failAlways(Call::acquire, Fault::unavailable); };
  world.pass(120s);
  EXPECT_THAT(world.runs, ElementsAre());
  EXPECT_EQ(machine.outcomes, (Outcomes{TaskOutcome::storeFailed, missed}));
  EXPECT_EQ(machine.reasons.back(), "the tick of 2026-01-01T01:00:00Z: the store did not answer in time");
}

TEST(ScheduledTaskTest, ATickWhoseLockIsNotThisMachinesAnyMoreIsNotRunByIt) {
  World world("2026-01-01 00:59:59");
  Machine& machine = world.start(Schedule::every(1h));
  Machine& other = world.start(Schedule::every(1h), -5s);
  bool broken = false;
  machine.network->onAcquired = [&] {
    if (std::exchange(broken, true)) return;
    EXPECT_TRUE(world.store->breakLock("report@2026-01-01T01:00:00Z", Instant::max()));
  };
  world.pass(30s);
  EXPECT_EQ(machine.outcomes, (Outcomes{missed}));
  EXPECT_THAT(machine.reasons,
              ElementsAre("the tick of 2026-01-01T01:00:00Z: its lock was lost before the run began"));
  ASSERT_EQ(world.runs.size(), 1U);
  EXPECT_EQ(world.runs.front().machine, 1U);
  EXPECT_EQ(other.outcomes, (Outcomes{done}));
}

TEST(ScheduledTaskTest, ATickWhoseLockTheStoreMayHaveForgottenIsClaimedAgain) {
  World world("2026-01-01 00:59:59");
  Machine& machine = world.start(Schedule::every(1h));
  Machine& other = world.start(Schedule::every(1h));
  other.asleep = true;
  int claims = 0;
  machine.network->onAcquired = [&] {
    if (++claims == 1) machine.network->failAlways(Call::acquire, Fault::unavailable);
  };
  world.pass(1s);
  EXPECT_EQ(machine.outcomes, (Outcomes{TaskOutcome::storeFailed})) << "between the tick and the task";
  machine.asleep = true;
  world.leap(10min);
  ASSERT_FALSE(world.holdsAny()) << "the store has forgotten the tick";
  world.clock->setWallClock(moment("2026-01-01 01:00:20"));
  other.asleep = false;
  world.pass(1s);
  ASSERT_EQ(world.runs.size(), 1U);
  machine.network->heal();
  machine.asleep = false;
  world.pass(30s);
  EXPECT_EQ(world.runs.size(), 1U) << "the other machine has the tick";
  EXPECT_EQ(machine.outcomes.back(), skipped);
}

TEST(ScheduledTaskTest, ATickThatComesAgainAfterItsRunIsClaimedAgain) {
  World world("2026-01-02 00:59:59");
  Machine& machine = world.start(Schedule::every(1h));
  world.pass(1s);
  ASSERT_EQ(world.runs.size(), 1U);
  world.clock->setWallClock(moment("2026-01-01 00:30:00"));  // by more than a day: taken at its word
  world.pass(1s);
  world.clock->setWallClock(moment("2026-01-02 00:59:59"));
  world.pass(10s);
  EXPECT_EQ(world.runs.size(), 1U);
  EXPECT_EQ(machine.outcomes.back(), skipped);
}

TEST(ScheduledTaskTest, AStoreThatIsDownForLongerIsAMissedTickAndTheNextOneComes) {
  World world("2026-01-01 00:59:59");
  Machine& machine = world.start(Schedule::every(1h));
  machine.network->failAlways(Call::acquire, Fault::unavailable);
  world.pass(120s);
  EXPECT_EQ(machine.outcomes, (Outcomes{TaskOutcome::storeFailed, missed}));
  EXPECT_EQ(machine.reasons.back(), "the tick of 2026-01-01T01:00:00Z: the store did not answer in time");
  machine.network->heal();
  world.pass(3600s);
  EXPECT_THAT(world.starts(), ElementsAre("2026-01-01 02:00:00"));
}

TEST(ScheduledTaskTest, WithOnceAStoreThatWasDownForHoursGetsTheLatestTickOnly) {
  World world("2026-01-01 00:59:59");
  Machine& machine = world.start(Schedule::every(1h), 0s, {.missed = Missed::once});
  world.pass(1s);
  ASSERT_EQ(world.runs.size(), 1U);
  machine.network->failAlways(Call::acquire, Fault::unavailable);
  world.pass(std::chrono::minutes{150});
  machine.network->heal();
  world.pass(40s);
  ASSERT_EQ(world.runs.size(), 2U);
  EXPECT_EQ(world.starts().back().substr(0, 13), "2026-01-01 03");
  world.pass(std::chrono::minutes{30});
  EXPECT_EQ(world.starts().back(), "2026-01-01 04:00:00");
}

TEST(ScheduledTaskTest, ATickThatNoMachineWasAwakeForIsSkippedUnlessItIsALittleLate) {
  World world("2026-01-01 00:59:00");
  Machine& machine = world.start(Schedule::every(1h));
  world.leap(120s);
  machine.step();
  EXPECT_THAT(world.starts(), ElementsAre("2026-01-01 01:01:00")) << "a minute late";
  world.leap(3601s);
  machine.step();
  EXPECT_EQ(world.runs.size(), 1U) << "a second more";
  world.leap(std::chrono::hours{100 * 24});
  machine.step();
  EXPECT_EQ(machine.outcomes, (Outcomes{done, missed, missed}));
  EXPECT_THAT(
      machine.reasons,
      ElementsAre("the tick of 2026-01-01T02:00:00Z: this process was not awake then, or its clock was set",
                  "the tick of 2026-01-01T03:00:00Z: this process was not awake then, or its clock was set"));
  world.pass(3600s);
  EXPECT_EQ(world.runs.size(), 2U);
}

TEST(ScheduledTaskTest, WithOnceTheLatestTickIsMadeUpForByOneMachine) {
  const auto nightly = Schedule::cron("30 2 * * *");
  const ScheduleOptions once{.missed = Missed::once};
  World world("2026-01-01 12:00:00");
  world.start(nightly, 0s, once);
  EXPECT_THAT(world.runs, ElementsAre());
  world.pass(1s);
  EXPECT_THAT(world.starts(), ElementsAre("2026-01-01 12:00:01")) << "no machine had run last night's";
  world.start(nightly, 20s, once);
  world.start(nightly, -10s, once);
  world.pass(60s);
  EXPECT_EQ(world.runs.size(), 1U);
  world.leapTo("2026-01-06 12:00:00");
  world.pass(60s);
  EXPECT_EQ(world.runs.size(), 2U) << "one of the five that were missed, and on one machine";
  world.leapTo("2026-01-07 02:29:00");
  world.pass(30s);
  EXPECT_EQ(world.runs.size(), 2U);
  world.leapTo("2026-01-08 00:29:00");
  world.pass(30s);
  EXPECT_EQ(world.runs.size(), 3U) << "not quite 22 h old";
  world.leapTo("2026-01-09 00:31:00");
  world.pass(60s);
  EXPECT_EQ(world.runs.size(), 3U) << "older";
}

TEST(ScheduledTaskTest, AWallClockThatIsSetRepeatsNoTickAndLosesNone) {
  World world("2026-01-01 00:59:00");
  Machine& machine = world.start(Schedule::every(1h));
  const auto set = [&](const char* now) { world.clock->setWallClock(moment(now)); };
  world.pass(70s);
  set("2026-01-01 00:10:00");  // an hour too early for a while
  world.pass(3600s);
  EXPECT_THAT(world.starts(), ElementsAre("2026-01-01 01:00:00")) << "not again";
  set("2026-01-01 02:00:30");  // forward over a tick
  world.pass(1s);
  EXPECT_EQ(world.runs.size(), 2U);
  set("2026-01-01 01:59:50");  // and back
  world.pass(20s);
  EXPECT_EQ(world.runs.size(), 2U);
  world.pass(3600s);
  EXPECT_EQ(world.starts().back(), "2026-01-01 03:00:00");
  set("2036-01-01 00:30:00");  // ten years too late, as after a flat battery
  world.pass(60s);
  EXPECT_EQ(machine.outcomes.back(), missed);
  set("2026-01-01 03:30:00");
  world.pass(1801s);
  EXPECT_EQ(world.starts().back(), "2026-01-01 04:00:00") << "further back than a day: at its word";
}

TEST(ScheduledTaskTest, ALockThatIsGrantedTooLateIsNoTick) {
  World world("2026-01-01 00:59:59");
  Machine& machine = world.start(Schedule::every(1h));
  machine.network->onAcquired = [&] { world.leap(121s); };
  world.pass(1s);
  EXPECT_THAT(world.runs, ElementsAre());
  EXPECT_THAT(machine.reasons,
              ElementsAre("the tick of 2026-01-01T01:00:00Z: its lock was granted too late"));
}

TEST(ScheduledTaskTest, AMachineThatIsStoppedWhileItTakesTheTickLeavesItToAnother) {
  World world("2026-01-01 00:59:59");
  Machine& machine = world.start(Schedule::every(1h));
  machine.network->onAcquired = [&] { machine.manager->stop(); };
  world.start(Schedule::every(1h));
  world.pass(1s);
  EXPECT_EQ(machine.outcomes, (Outcomes{TaskOutcome::stopped}));
  ASSERT_EQ(world.runs.size(), 1U);
  EXPECT_EQ(world.runs.front().machine, 1U);
}

TEST(ScheduledTaskTest, AWallClockThatIsSetBackAndWaitedForIsToldOnce) {
  World world("2026-01-01 00:59:59");
  Machine& machine = world.start(Schedule::every(1h));
  const auto set = [&](const char* now) { world.clock->setWallClock(moment(now)); };
  set("2026-01-01 12:59:59");  // wrong for a second
  world.pass(1s);
  set("2026-01-01 01:00:00");
  world.pass(7200s);
  EXPECT_EQ(machine.outcomes, (Outcomes{missed, done, missed}));
  EXPECT_EQ(machine.reasons.back(), "the wall clock was set back: no tick comes before 2026-01-01T14:00:00Z");
  set("2026-01-01 13:00:10");
  world.pass(10s);
  set("2026-01-01 12:59:50");  // within clockSkew
  world.pass(5s);
  EXPECT_EQ(machine.outcomes.size(), 3U);
}

TEST(ScheduledTaskTest, NamesTheOptionThatIsOutOfRange) {
  World world("2026-01-01 00:00:00");
  const auto manager = std::make_shared<LockManager>(world.store);
  const auto made = [&](std::string name, ScheduleOptions options) -> std::string {
    try {
      const auto work = [](const Lock&, const std::stop_token&) {};
      const auto task = std::make_shared<ExclusiveTask>(manager, TaskOptions{.name = std::move(name)}, work);
      const ScheduledTask scheduled(task, Schedule::every(1h), options);
    } catch (const std::invalid_argument& fault) {
      return fault.what();
    }
    return "not refused";
  };
  EXPECT_EQ(made("a", {.clockSkew = -1s}), "clockSkew is -1s: it must be 0s to 1h");
  EXPECT_EQ(made("a", {.clockSkew = 61min}), "clockSkew is 61m: it must be 0s to 1h");
  EXPECT_EQ(made("a", {.missed = Missed::once, .clockSkew = 1h}), "not refused");
  EXPECT_LE(leaseOf(Schedule::cron("@daily"), {.missed = Missed::once, .clockSkew = 1h}), 24h);
  EXPECT_EQ(leaseOf(Schedule::cron("@daily"), {}), 150s + 600ms);
  EXPECT_EQ(leaseOf(Schedule::every(10s), {.missed = Missed::once}), 100s + 100ms);
  EXPECT_EQ(made(std::string(491, 'a'), {}), "not refused");
  EXPECT_NE(made(std::string(492, 'a'), {}), "not refused");
  EXPECT_THROW(ScheduledTask(nullptr, Schedule::every(1h)), std::invalid_argument);
}

/// The real thing, with its thread.
class ScheduledTaskThread : public ManagerFixture {
 protected:
  void SetUp() override { clock->setWallClock(moment("2026-01-01 00:59:58")); }

  std::shared_ptr<ExclusiveTask> task(ExclusiveTask::Work work) {
    const auto locks = std::make_shared<LockManager>(store, options(seed + 2));
    return std::make_shared<ExclusiveTask>(locks, TaskOptions{.name = "report"}, std::move(work));
  }
};

TEST_F(ScheduledTaskThread, LooksAtTheWallClockEachSecondAndRunsTheTick) {
  std::promise<void> ran;
  const ScheduledTask scheduled(task([&](const Lock&, const std::stop_token&) { ran.set_value(); }),
                                Schedule::every(1h));
  ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 1s));
  clock->setWallClock(moment("2026-01-01 00:30:00"));
  clock->advance(1s);
  ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 1s));
  clock->setWallClock(moment("2026-01-01 00:59:59") + 700ms);
  clock->advance(1s);
  EXPECT_EQ(ran.get_future().wait_for(20s), std::future_status::ready);
}

TEST_F(ScheduledTaskThread, WaitsNoLongerThanUntilTheTick) {
  clock->setWallClock(moment("2026-01-01 00:59:59") + 700ms);
  const ScheduledTask scheduled(task([](const Lock&, const std::stop_token&) {}), Schedule::every(1h));
  EXPECT_TRUE(clock->awaitWakeUpAt(clock->now() + 300ms));
}

TEST_F(ScheduledTaskThread, ItsEndStopsTheWorkAndWaitsForIt) {
  std::promise<void> begun;
  std::atomic<bool> ended = false;
  auto scheduled =
      std::make_unique<ScheduledTask>(task([&](const Lock&, const std::stop_token& stop) {
                                        std::promise<void> told;
                                        const std::stop_callback onStop(stop, [&] { told.set_value(); });
                                        begun.set_value();
                                        told.get_future().wait();
                                        ended = true;
                                      }),
                                      Schedule::every(1h));
  ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 1s));
  clock->advance(2s);
  begun.get_future().wait();
  scheduled.reset();
  EXPECT_TRUE(ended);
}

TEST_F(ScheduledTaskThread, ItsEndTakesBackTheTickThatItWaitedFor) {
  std::vector<EventKind> told;
  const auto locks = std::make_shared<LockManager>(store, heardBy(seed + 2, [&](const Event& event) {
                                                     EXPECT_EQ(event.key, "report");
                                                     told.push_back(event.kind);
                                                   }));
  const auto once = std::make_shared<ExclusiveTask>(locks, TaskOptions{.name = "report"},
                                                    [](const Lock&, const std::stop_token&) {});
  { const ScheduledTask scheduled(once, Schedule::every(1h)); }
  EXPECT_THAT(told, ElementsAre(EventKind::taskPlanned, EventKind::scheduleEnded));
}

TEST_F(ScheduledTaskThread, MayBeEndedByItsOwnWork) {
  std::unique_ptr<ScheduledTask> scheduled;
  std::promise<void> made;
  std::promise<void> ran;
  scheduled = std::make_unique<ScheduledTask>(task([&](const Lock&, const std::stop_token&) {
                                                made.get_future().wait();
                                                scheduled.reset();
                                                ran.set_value();
                                              }),
                                              Schedule::every(1h));
  made.set_value();
  ASSERT_TRUE(clock->awaitWakeUpAt(clock->now() + 1s));
  clock->advance(2s);
  EXPECT_EQ(ran.get_future().wait_for(20s), std::future_status::ready);
}

}  // namespace
}  // namespace lockkeeper::test
