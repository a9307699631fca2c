#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "database_server.h"
#include "postgres_server.h"
#include "process.h"
#include "redis_server.h"

// The program of the README, installed package and all: another store is another URI, and nothing else.
// README_PROGRAM in the environment names another build of it.

namespace lockkeeper::test {
namespace {

std::string address(const RedisServer& server) { return "127.0.0.1:" + std::to_string(server.port()); }

std::string program() {
  const char* named = std::getenv("README_PROGRAM");
  return named ? named : README_PROGRAM;
}

/// Runs the program, which must get its lock, and returns the fence that it prints, or 0 if it prints none.
std::uint64_t fenceOn(const std::string& store) {
  const Finished finished = runToEnd({program(), store});
  EXPECT_EQ(finished.exitCode, 0);
  const std::string before = "order 42 is ours, fence ";
  if (finished.output.starts_with(before)) return std::stoull(finished.output.substr(before.size()));
  EXPECT_EQ(finished.output, "order 42 is ours\n") << "on " << store << ": " << finished.errors;
  return 0;
}

/// A second run finds the lock free again.
void expectFences(const std::string& store) {
  const std::uint64_t first = fenceOn(store);
  EXPECT_GT(first, 0U);
  EXPECT_GT(fenceOn(store), first);
}

void expectNoFences(const std::string& store) {
  EXPECT_EQ(fenceOn(store), 0U);
  EXPECT_EQ(fenceOn(store), 0U);
}

TEST(ReadmeProgram, RunsWithoutAStore) {
  EXPECT_EQ(runToEnd({program()}).output, "order 42 is ours, fence 1\n");
}

TEST(ReadmeProgram, RunsOnRedis) {
  const RedisServer redis;
  expectFences("redis://" + address(redis));
  redis.command({"SET", "order:42", "somebody", "PX", "600000"});
  EXPECT_EQ(runToEnd({program(), redis.uri()}).output, "order 42 is busy\n");
}

TEST(ReadmeProgram, RunsBesideALegacyFleet) {
  const RedisServer redis;
  expectNoFences("redis+legacy://" + address(redis) + "/0?keyPrefix=lock:");
}

TEST(ReadmeProgram, RunsOnAQuorum) {
  const std::array<RedisServer, 3> nodes;
  expectNoFences("redlock://" + address(nodes[0]) + "," + address(nodes[1]) + "," + address(nodes[2]) +
                 "?restartGuard=off");
}

TEST(ReadmeProgram, RunsOnMariadb) {
  DatabaseServer server(Brand::mariadb);
  const std::string uri = server.uri(server.newDatabase());
  for (const std::string scheme : {"mysql+getlock", "mysql+version"}) {
    expectFences(scheme + uri.substr(uri.find("://")) + "?createTable=true");
  }
}

TEST(ReadmeProgram, RunsOnPostgres) {
  PostgresServer server;
  server.makeLocks();
  expectFences(server.uri("postgres+version"));
}

}  // namespace
}  // namespace lockkeeper::test
