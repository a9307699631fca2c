#include "redlock/restart_guard.h"

#include <gtest/gtest.h>

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;

constexpr Instant start{1h};

ServerFacts server(const char* runId, const char* uptime) {
  ServerFacts facts;
  facts.runId = runId;
  facts.uptimeSeconds = uptime;
  return facts;
}

ServerFacts synced(ServerFacts facts) {
  facts.aofEnabled = "1";
  facts.appendFsync = "always";
  return facts;
}

TEST(RestartGuard, CountsFromTheServersOwnUptimeRoundedAgainstIt) {
  RestartGuard guard(60s, false);
  guard.met(server("a", "100"), start, Instant{});
  EXPECT_EQ(guard.votesFrom(), start - 99s + 60s);
  RestartGuard young(60s, false);
  young.met(server("a", "10"), start, Instant{});
  EXPECT_EQ(young.votesFrom(), start + 51s);
  RestartGuard newborn(60s, false);
  newborn.met(server("a", "0"), start, Instant{});
  EXPECT_EQ(newborn.votesFrom(), start + 60s);
}

TEST(RestartGuard, DoesNotBelieveAnUptimeFromBeforeItWasHeardOfLast) {
  RestartGuard guard(60s, false);
  guard.met(server("a", "100000"), start, Instant{});
  EXPECT_LE(guard.votesFrom(), start);
  // Its clock was set forward, so that it takes itself for much older than it is.
  guard.met(server("b", "5000"), start + 10s, start + 8s);
  EXPECT_EQ(guard.votesFrom(), start + 68s);
}

TEST(RestartGuard, AReconnectToTheSameServerChangesNothing) {
  RestartGuard guard(60s, false);
  guard.met(server("a", "10"), start, Instant{});
  const Instant from = guard.votesFrom();
  guard.met(server("a", "0"), start + 5s, start + 4s);
  EXPECT_EQ(guard.votesFrom(), from);
}

TEST(RestartGuard, AServerThatTellsNoRunIdMayHaveRestartedWheneverItsConnectionHasEnded) {
  RestartGuard guard(60s, false);
  guard.met(server("", "10"), start, Instant{});
  EXPECT_EQ(guard.votesFrom(), start + 51s);
  guard.met(server("", "100000"), start + 200s, start + 190s);
  EXPECT_EQ(guard.votesFrom(), start + 250s);
  RestartGuard old(60s, false);
  old.met(server("", "100000"), start, Instant{});
  EXPECT_LE(old.votesFrom(), start) << "it has not been met before";
}

TEST(RestartGuard, DoesNotTrustAnUptimeThatIsNone) {
  for (const char* const uptime : {"", "-7", "long", "99999999999999999999999"}) {
    RestartGuard guard(60s, false);
    guard.met(server("a", uptime), start, Instant{});
    EXPECT_EQ(guard.votesFrom(), start + 60s) << uptime;
  }
}

TEST(RestartGuard, TrustsASyncedServerOnlyWhereThatWasDeclared) {
  for (const bool declared : {true, false}) {
    RestartGuard guard(60s, declared);
    guard.met(synced(server("a", "0")), start, Instant{});
    EXPECT_EQ(guard.votesFrom() <= start, declared);
    RestartGuard unsynced(60s, declared);
    unsynced.met(server("a", "0"), start, Instant{});
    EXPECT_EQ(unsynced.votesFrom(), start + 60s);
  }
}

TEST(RestartGuard, SwitchedOffLetsEveryoneVote) {
  RestartGuard guard(std::nullopt, false);
  guard.met(server("a", "0"), start, Instant{});
  EXPECT_LE(guard.votesFrom(), start);
}

}  // namespace
}  // namespace lockkeeper::redis
