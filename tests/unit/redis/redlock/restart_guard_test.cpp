#include "redlock/restart_guard.h"

#include <gtest/gtest.h>

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;

constexpr Instant start{1h};

ServerFacts server(const char* runId) {
  ServerFacts facts;
  facts.runId = runId;
  return facts;
}

ServerFacts synced(ServerFacts facts) {
  facts.aofEnabled = "1";
  facts.appendFsync = "always";
  return facts;
}

TEST(RestartGuard, CountsFromWhenEachStartIsMet) {
  RestartGuard guard(60s, false);
  guard.met(server("a"), start);
  EXPECT_EQ(guard.votesFrom(), start + 60s);
  guard.met(server("b"), start + 100s);
  EXPECT_EQ(guard.votesFrom(), start + 160s);
}

TEST(RestartGuard, AReconnectToTheSameServerChangesNothing) {
  RestartGuard guard(60s, false);
  guard.met(server("a"), start);
  guard.met(server("a"), start + 5s);
  EXPECT_EQ(guard.votesFrom(), start + 60s);
  EXPECT_EQ(guard.metAt(), start);
}

TEST(RestartGuard, WhatOthersHaveObservedCountsForThatStartOnly) {
  RestartGuard guard(60s, false);
  guard.met(server("a"), start);
  guard.observed("a", start + 20s);
  EXPECT_EQ(guard.votesFrom(), start + 20s);
  guard.observed("a", start + 50s);
  EXPECT_EQ(guard.votesFrom(), start + 20s) << "who has observed it for less does not take that back";
  guard.met(server("b"), start + 30s);
  guard.observed("a", start);
  EXPECT_EQ(guard.votesFrom(), start + 90s);
}

TEST(RestartGuard, AServerThatTellsNoRunIdMayHaveRestartedWheneverItsConnectionHasEnded) {
  RestartGuard guard(60s, false);
  guard.met(server(""), start);
  EXPECT_EQ(guard.votesFrom(), start + 60s);
  guard.met(server(""), start + 200s);
  EXPECT_EQ(guard.votesFrom(), start + 260s);
}

TEST(RestartGuard, TrustsASyncedServerOnlyWhereThatWasDeclared) {
  for (const bool declared : {true, false}) {
    RestartGuard guard(60s, declared);
    guard.met(synced(server("a")), start);
    EXPECT_EQ(guard.votesFrom() <= start, declared);
    RestartGuard unsynced(60s, declared);
    unsynced.met(server("a"), start);
    EXPECT_EQ(unsynced.votesFrom(), start + 60s);
  }
}

TEST(RestartGuard, SwitchedOffLetsEveryoneVote) {
  RestartGuard guard(std::nullopt, false);
  guard.met(server("a"), start);
  EXPECT_LE(guard.votesFrom(), start);
}

}  // namespace
}  // namespace lockkeeper::redis
