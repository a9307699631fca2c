// Histories of what lockkeeper does on stores: the real managers, drivers and scripts, under a schedule,
// clocks and a network of ours.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "simulation/histories/families.h"
#include "simulation/histories/history.h"

namespace lockkeeper::simulation {
namespace {

std::uint64_t numberFrom(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::stoull(text) : otherwise;
}

TEST(LockHistories, AreShrunk) {
  const ScriptChange change{"'NX', 'PX'", "'PX'"};
  const std::string trace = shrunkTrace(lockFamily, 1, change);
  EXPECT_NE(trace.find("with 0 faults, 0 torn, 0 slow, 0 short reads, 3 operations"), std::string::npos)
      << trace;
}

TEST(Histories, AreTheSameForTheSameSeed) {
  for (const Family* const family : families) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
      EXPECT_EQ(History(*family, seed).run().hash, History(*family, seed).run().hash) << seed;
  }
}

struct Defect {
  const char* name;
  const Family* family;
  ScriptChange change;
};

class ChangedScript : public ::testing::TestWithParam<Defect> {};

// What the histories are worth: each defect is found.
TEST_P(ChangedScript, IsFound) {
  bool met = false;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Outcome outcome = History(*GetParam().family, seed, GetParam().change).run();
    met = met || outcome.changed;
    if (outcome.faults.empty()) continue;
    std::printf("found by seed %llu: %s\n", static_cast<unsigned long long>(seed), outcome.faults[0].c_str());
    return;
  }
  FAIL() << (met ? "200 histories are not enough" : "no script contains what is changed");
}

const Defect defects[] = {
    {"ReleaseWithoutCompare",
     &lockFamily,
     {"if value == ARGV[2] and (not KEYS[2]", "if value and (not KEYS[2]"}},
    {"AcquireWithoutNx", &lockFamily, {"'NX', 'PX'", "'PX'"}},
    {"FenceOfTheLastGrant", &lockFamily, {"redis.pcall('INCR', KEYS[2])", "redis.pcall('GET', KEYS[2])"}},
    {"SharesWithoutLimit",
     &lockFamily,
     {"return not permits.limit or limit == permits.limit and permits.used + weight <= limit",
      "return true"}},
    {"GrantFromTheQueueIsShort",
     &lockFamily,
     {"redis.call('SET', KEYS[1], waiter, 'PX', entry.ttl)",
      "redis.call('SET', KEYS[1], waiter, 'PX', 200)"}},
    {"RenewedShareStaysShort", &lockFamily, {"redis.call('ZADD', KEYS[1], now + length, ARGV[1])", ""}},
    {"VoteIsTakenBackWithoutCompare",
     &redlockFamily,
     {"if value == ARGV[1] then\n  return redis.call('DEL', KEYS[1])",
      "if value then\n  return redis.call('DEL', KEYS[1])"}},
    {"NodeVotesAfterAnyStart", &redlockFamily, {"  observed, machines = 0, ''", "  observed = length"}},
    {"OnePermitTooMany",
     &permitFamily,
     {"isSame and permits.used + weight <= limit", "isSame and permits.used + weight <= limit + 1"}},
    {"PermitIsGivenBackTwice",
     &permitFamily,
     {"permits.used = permits.used - (shareOf(value) or 0)",
      "permits.used = permits.used - 2 * (shareOf(value) or 0)"}},
    {"SetTakesItsFirstKeyOnly",
     &permitFamily,
     {"replies[index] = acquire(", "replies[index] = index > 1 and {1, 1} or acquire("}},
    {"OneTooManyInAWindow",
     &limitFamily,
     {"timesIn(times, cost, third - used)", "timesIn(times, cost, third - used + 1)"}},
    {"SlidingWindowForgetsOne",
     &limitFamily,
     {"redis.call('LTRIM', key, outside, -1)", "redis.call('LTRIM', key, outside + 1, -1)"}},
    {"BucketTakesOneMore", &limitFamily, {"(level > room or", "(level > room + 140000 or"}},
    {"CountsAtALatchAreNotKept", &latchFamily, {"redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])", ""}},
    {"SomeInsteadOfAllOrNone", &limitFamily, {"ARGV[1] == 'take' and allFit", "ARGV[1] == 'take'"}},
};

INSTANTIATE_TEST_SUITE_P(Each, ChangedScript, ::testing::ValuesIn(defects),
                         [](const auto& each) { return std::string(each.param.name); });

std::uint64_t runningSeed = 0;
struct sigaction handledBefore[NSIG] {};

// A history that ends the program leaves its seed, too. What has failed is done again, and handled as before.
extern "C" void tellSeed(int signal) {
  std::printf("\nseed %llu, signal %d\n", static_cast<unsigned long long>(runningSeed), signal);
  std::fflush(stdout);
  sigaction(signal, &handledBefore[signal], nullptr);
}

void tellSeedOfCrash() {
  if (runningSeed > 0) return;
  struct sigaction action {};
  action.sa_handler = &tellSeed;
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    sigaction(signal, &action, &handledBefore[signal]);
}

void runHistories(const Family& family) {
  tellSeedOfCrash();
  const std::uint64_t first = numberFrom("LOCKKEEPER_SEED", 1);
  const std::uint64_t count = numberFrom("LOCKKEEPER_HISTORIES", 50);
  Outcome all;
  bool isShrunk = false;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    runningSeed = seed;
    const Outcome outcome = History(family, seed).run();
    for (const std::string& fault : outcome.faults) ADD_FAILURE() << "seed " << seed << ", " << fault;
    // One that is shrunk, which takes some hundred histories, mostly tells what the others are about.
    if (!outcome.faults.empty() && !std::exchange(isShrunk, true))
      ADD_FAILURE() << "seed " << seed << ", shrunk, " << shrunkTrace(family, seed);
    all.grants += outcome.grants;
    all.torn += outcome.torn;
    all.slow += outcome.slow;
    all.pauses += outcome.pauses;
    all.switches += outcome.switches;
  }
  std::printf("%llu grants, %llu connections reset, %llu slow packets, %llu pauses, %llu switches\n",
              static_cast<unsigned long long>(all.grants), static_cast<unsigned long long>(all.torn),
              static_cast<unsigned long long>(all.slow), static_cast<unsigned long long>(all.pauses),
              static_cast<unsigned long long>(all.switches));
  EXPECT_GT(all.grants, count);
  if (count >= 20) {
    EXPECT_GT(all.torn, 0U);
    EXPECT_GT(all.slow, 0U);
    EXPECT_TRUE(all.pauses > 0 || &family == &valueFamily);
  }
}

TEST(LockHistories, HaveOneHolderAndIncreasingFences) { runHistories(lockFamily); }

TEST(RedlockHistories, HaveOneHolder) { runHistories(redlockFamily); }

TEST(PermitHistories, HaveNoMoreHoldersThanPermits) { runHistories(permitFamily); }

TEST(EtcdHistories, HaveOneHolderAndIncreasingFences) { runHistories(etcdFamily); }

TEST(SentinelHistories, HaveOneHolder) { runHistories(sentinelFamily); }

TEST(ClusterHistories, HaveOneHolder) { runHistories(clusterFamily); }

TEST(ValueHistories, HaveNoneThatIsTooOld) { runHistories(valueFamily); }

TEST(LimitHistories, HaveWhatTheLimitsAdmit) { runHistories(limitFamily); }

TEST(LatchHistories, HaveNoneThatOpensTooEarlyOrNever) { runHistories(latchFamily); }

TEST(ElectionHistories, HaveOneLeaderAndOneInTheEnd) { runHistories(electionFamily); }

TEST(TaskHistories, HaveEachTickOnce) { runHistories(taskFamily); }

TEST(MigrationHistories, HaveOneHolderAndEndInTheTarget) { runHistories(migrationFamily); }

}  // namespace
}  // namespace lockkeeper::simulation
