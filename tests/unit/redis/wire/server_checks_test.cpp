#include "wire/dial/server_checks.h"

#include <gtest/gtest.h>

#include "lockkeeper/error.h"
#include "lockkeeper/redis/redis_options.h"
#include "refusal.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {
namespace {

using test::refusalOf;

TEST(ServerChecks, TakesTheFactsFromInfo) {
  const ServerFacts facts = parseInfo(
      "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\nmaxmemory_policy:noeviction\r\n"
      "aof_enabled:1\r\n# Replication\r\nrole:master\r\nslave_role:x\r\n");
  EXPECT_EQ(facts.version, "7.0.15");
  EXPECT_EQ(facts.runId, "abc");
  EXPECT_EQ(facts.evictionPolicy, "noeviction");
  EXPECT_EQ(facts.aofEnabled, "1");
  EXPECT_EQ(facts.role, "master");
  EXPECT_EQ(parseInfo("").role, "");
}

std::string faultOf(const ServerFacts& facts, const RedisOptions& options = {}) {
  return refusalOf<Error>([&] { checkServer("the store", facts, options); });
}

const ServerFacts good = {.role = "master", .version = "6.0.1", .evictionPolicy = "noeviction"};

TEST(ServerChecks, RefusesServersThatCannotKeepLocks) {
  EXPECT_EQ(faultOf(good), "accepted");
  ServerFacts facts = good;
  facts.role = "slave";
  EXPECT_NE(faultOf(facts).find("not a master (role: slave)"), std::string::npos);
  facts = good;
  facts.version = "5.0.14";
  EXPECT_NE(faultOf(facts).find("version 5.0.14"), std::string::npos);
  facts.version = "10.0.0";
  EXPECT_EQ(faultOf(facts), "accepted");
  EXPECT_NE(faultOf(ServerFacts{}), "accepted");
}

TEST(ServerChecks, NamesTheOtherSchemeForANodeOfAClusterAndForAServerOfItsOwn) {
  ServerFacts node = good;
  node.clusterEnabled = "1";
  RedisOptions plain;
  plain.host = "::1";
  plain.port = 7000;
  EXPECT_NE(faultOf(node, plain).find("write redis+cluster://[::1]:7000"), std::string::npos);
  RedisOptions cluster = plain;
  cluster.cluster = ClusterUse::node;
  EXPECT_EQ(faultOf(node, cluster), "accepted");
  EXPECT_NE(faultOf(good, cluster).find("write redis://[::1]:7000"), std::string::npos);
  node.role = "slave";
  node.evictionPolicy = "allkeys-lru";
  EXPECT_NE(faultOf(node, cluster), "accepted");
  cluster.cluster = ClusterUse::informant;
  EXPECT_EQ(faultOf(node, cluster), "accepted");
}

TEST(ServerChecks, RefusesEvictionUnlessItIsAllowed) {
  for (const char* const policy : {"allkeys-lru", "allkeys-random", "volatile-ttl", "volatile-lfu"}) {
    ServerFacts facts = good;
    facts.evictionPolicy = policy;
    EXPECT_NE(faultOf(facts).find(policy), std::string::npos);
    RedisOptions options;
    options.allowEviction = true;
    EXPECT_EQ(faultOf(facts, options), "accepted");
  }
}

TEST(ServerChecks, AcceptsAnyPolicyWhereMemoryHasNoLimit) {
  ServerFacts facts = good;
  facts.evictionPolicy = "volatile-lru";
  facts.maxMemory = parseInfo("\r\nmaxmemory:0\r\nmaxmemory_human:0B\r\n").maxMemory;
  EXPECT_EQ(faultOf(facts), "accepted");
  facts.maxMemory = parseInfo("\r\nmaxmemory:104857600\r\n").maxMemory;
  EXPECT_NE(faultOf(facts), "accepted");
}

TEST(ServerChecks, DoesNotRepeatWhateverTheServerSays) {
  ServerFacts facts = good;
  facts.role = "<script>\x1b[31m" + std::string(5000, 'x');
  EXPECT_NE(faultOf(facts).find("role: unknown"), std::string::npos);
}

TEST(ServerChecks, SaysWhatACrashDoes) {
  ServerFacts facts = good;
  facts.aofEnabled = "0";
  EXPECT_NE(durabilityOf(facts).find("frees all locks"), std::string::npos);
  facts.aofEnabled = "1";
  facts.appendFsync = "always";
  EXPECT_NE(durabilityOf(facts).find("power loss"), std::string::npos);
  facts.appendFsync = "";
  EXPECT_NE(durabilityOf(facts).find("unknown"), std::string::npos);
}

TEST(ServerChecks, SaysThatAReplicaMayLackTheLastWrites) {
  const std::string lack = "a replica that takes over may lack";
  EXPECT_EQ(durabilityOf(parseInfo("\r\nconnected_slaves:0\r\naof_enabled:1\r\n")).find(lack),
            std::string::npos);
  EXPECT_NE(durabilityOf(parseInfo("\r\nconnected_slaves:2\r\naof_enabled:1\r\n")).find(lack),
            std::string::npos);
}

TEST(ServerErrors, AreToldApartByTheirFirstWord) {
  struct Case {
    const char* text;
    ErrorCode code;
  };
  for (const Case& each : {
           Case{"NOAUTH Authentication required.", ErrorCode::config},
           Case{"WRONGPASS invalid username-password pair", ErrorCode::config},
           Case{"NOPERM this user has no permissions", ErrorCode::config},
           Case{"LOADING Redis is loading the dataset in memory", ErrorCode::storeUnavailable},
           Case{"OOM command not allowed when used memory > 'maxmemory'.", ErrorCode::storeUnavailable},
           Case{"READONLY You can't write against a read only replica.", ErrorCode::storeUnavailable},
           Case{"MOVED 3999 127.0.0.1:6381", ErrorCode::storeUnavailable},
           Case{"ERR something", ErrorCode::outcomeUnknown},
           Case{"OOMPH no such class", ErrorCode::outcomeUnknown},
           Case{"", ErrorCode::outcomeUnknown},
       }) {
    Reply error;
    error.kind = ReplyKind::error;
    error.text = std::string(each.text) + " s3cret";
    const ServerFault fault = redis::faultOf("the store", error);
    EXPECT_EQ(fault.code, each.code) << each.text;
    EXPECT_EQ(fault.text.find("s3cret"), std::string::npos) << fault.text;
  }
}

}  // namespace
}  // namespace lockkeeper::redis
