#include <algorithm>
#include <iostream>
#include <map>
#include <random>

#include "election_journal.h"
#include "forked_child.h"
#include "lockkeeper/leader_election.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// Three candidates, each a process of its own.
class ElectionOfProcesses : public RedisFaultTest {
 protected:
  void start(const std::string& who) {
    candidates.erase(who);
    candidates.try_emplace(who, std::vector<std::string>{ELECTION_CANDIDATE, std::to_string(server.port()),
                                                         folder / "journal", who});
  }
  void startAll() {
    for (const char* who : {"a", "b", "c"}) start(who);
  }
  Process& processOf(const std::string& who) { return candidates.at(who); }

  std::vector<LeadershipEvent> events() const { return LeadershipEvent::all(journal); }
  std::optional<LeadershipEvent> find(const std::string& what, Fence after) const {
    const auto all = events();
    const auto found = std::find_if(
        all.begin(), all.end(), [&](const auto& event) { return event.what == what && event.fence > after; });
    return found == all.end() ? std::nullopt : std::optional(*found);
  }
  /// The first that is elected with a greater fence.
  LeadershipEvent awaitElected(Fence after = 0) const {
    if (!waitUntil([&] { return find("elected", after).has_value(); }, 60s)) {
      throw std::runtime_error("nobody was elected");
    }
    return *find("elected", after);
  }

  /// The lease in the store cannot end before this, if nobody renews it.
  Instant leaseEnd() const {
    const Instant now = systemClock()->now();
    return now + std::chrono::milliseconds(std::stoll(server.command({"PTTL", "chief"})));
  }

  const TempFolder folder;
  const Journal journal{folder / "journal"};
  std::map<std::string, Process> candidates;
};

TEST_F(ElectionOfProcesses, AKilledLeaderIsFollowedOnlyAfterItsLeaseHasEnded) {
  startAll();
  const LeadershipEvent first = awaitElected();
  processOf(first.who).signal(SIGKILL);
  ASSERT_EQ(processOf(first.who).waitFor(20s), 128 + SIGKILL);
  const Instant end = leaseEnd();
  const LeadershipEvent next = awaitElected(first.fence);
  EXPECT_NE(next.who, first.who);
  EXPECT_GE(next.when, end);
}

TEST_F(ElectionOfProcesses, AFrozenLeaderIsFollowedAfterItsLeaseAndIsDeposedWhenItWakesUp) {
  startAll();
  const LeadershipEvent first = awaitElected();
  processOf(first.who).pause();
  const Instant end = leaseEnd();
  const LeadershipEvent next = awaitElected(first.fence);
  EXPECT_NE(next.who, first.who);
  EXPECT_GE(next.when, end);
  EXPECT_FALSE(find("deposed", 0)) << "it must have slept through all of this";
  processOf(first.who).resume();
  ASSERT_TRUE(waitUntil([&] { return find("deposed", 0).has_value(); }));
  EXPECT_EQ(find("deposed", 0)->who, first.who);
  EXPECT_EQ(find("deposed", 0)->fence, first.fence);
}

TEST_F(ElectionOfProcesses, ALeaderThatEndsIsFollowedOnlyAfterItWasDeposed) {
  startAll();
  const LeadershipEvent first = awaitElected();
  processOf(first.who).signal(SIGTERM);
  EXPECT_EQ(processOf(first.who).waitFor(20s), 0);
  const LeadershipEvent next = awaitElected(first.fence);
  const auto all = events();
  ASSERT_GE(all.size(), 3U);
  EXPECT_EQ(all[1].what, "deposed");
  EXPECT_EQ(all[1].who, first.who);
  EXPECT_GE(next.when, all[1].when);
}

TEST_F(ElectionOfProcesses, AForkedChildIsNoLeaderAndEndsItsCopyAtOnce) {
  ElectionOptions options;
  options.name = "chief";
  auto election =
      std::make_unique<LeaderElection>(std::make_shared<LockManager>(direct), options, ElectionHooks());
  ASSERT_TRUE(waitUntil([&] { return election->isLeader(); }));
  const int failedCheck = inForkedChild([&] {
    if (election->isLeader() || election->fence()) return 1;
    if (election->resign(0ms)) return 2;
    election.reset();
    return 0;
  });
  EXPECT_EQ(failedCheck, 0);
  EXPECT_TRUE(election->isLeader());
  EXPECT_FALSE(isFree("chief"));
}

/// What a term was hit by, and when it ended for a leader that could not write its end down.
struct Hit {
  std::string by;
  Instant when;
};

TEST_F(ElectionOfProcesses, TermsOfLeadersThatObeyNeverOverlapWhateverHitsThem) {
  startAll();
  std::mt19937 dice(20251);
  std::vector<std::string> faults{"kill", "freeze", "resign", "server frozen",
                                  "kill", "freeze", "resign", "server frozen"};
  std::shuffle(faults.begin(), faults.end(), dice);
  std::map<Fence, Hit> hits;
  Fence last = 0;
  for (const std::string& fault : faults) {
    const LeadershipEvent leader = awaitElected(last);
    last = leader.fence;
    if (fault == "kill") {
      processOf(leader.who).signal(SIGKILL);
      processOf(leader.who).waitFor(20s);
      hits[last] = {fault, systemClock()->now()};
      start(leader.who);
    } else if (fault == "freeze") {
      processOf(leader.who).pause();
      hits[last] = {fault, systemClock()->now()};
      awaitElected(last);
      processOf(leader.who).resume();
    } else if (fault == "resign") {
      processOf(leader.who).signal(SIGUSR1);
      hits[last] = {fault, Instant::max()};
    } else {
      server.pause();
      hits[last] = {fault, Instant::max()};
      const auto over = [&] {
        const auto all = events();
        return std::any_of(all.begin(), all.end(), [&](const auto& event) {
          return event.what == "deposed" && event.fence == leader.fence;
        });
      };
      EXPECT_TRUE(waitUntil(over, 60s)) << "deposed though the server does not answer";
      server.resume();
    }
  }
  awaitElected(last);
  for (const char* who : {"a", "b", "c"}) processOf(who).signal(SIGTERM);
  for (const char* who : {"a", "b", "c"}) EXPECT_EQ(processOf(who).waitFor(30s), 0);

  struct Term {
    LeadershipEvent begin;
    Instant end = Instant::max();
  };
  std::map<Fence, Term> terms;
  int late = 0;
  for (const LeadershipEvent& event : events()) {
    if (event.what == "elected") terms[event.fence].begin = event;
    if (event.what == "deposed") terms[event.fence].end = event.when;
    if (event.what == "late") ++late;
  }
  std::map<std::string, int> counted;
  for (auto& [fence, term] : terms) {
    const auto hit = hits.find(fence);
    if (hit == hits.end()) continue;
    ++counted[hit->second.by];
    // The process did nothing from then on, whatever it wrote when it woke up.
    term.end = std::min(term.end, hit->second.when);
  }
  for (auto term = terms.begin(); std::next(term) != terms.end(); ++term) {
    EXPECT_NE(term->second.end, Instant::max()) << "fence " << term->first;
    EXPECT_LE(term->second.end, std::next(term)->second.begin.when) << "fence " << term->first;
  }
  for (const char* fault : {"kill", "freeze", "resign", "server frozen"})
    EXPECT_EQ(counted[fault], 2) << fault;
  EXPECT_GE(terms.size(), faults.size() + 1);
  std::cout << terms.size() << " terms, " << hits.size() << " hit, " << late << " callbacks late\n";
}

}  // namespace
}  // namespace lockkeeper::test
