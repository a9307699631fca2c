#include "session/server_check.h"

#include "lockkeeper/error.h"
#include "session/server_session.h"

#include <gmock/gmock.h>

namespace lockkeeper::mysql {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <class Refusal>
std::string verdict(const ServerSettings& settings) {
  try {
    return "accepted: " + judgeServer(settings, "store").durability;
  } catch (const Refusal& error) {
    return error.what();
  }
}

ServerSettings member(const char* state, const char* majority) {
  return {{"log_bin", "ON"},
          {"group_replication_group_name", "7ad9f9bc"},
          {"group_member_state", state},
          {"group_member_majority", majority}};
}

TEST(ServerCheck, WaitsForAMemberThatHasItsGroup) {
  EXPECT_THAT(verdict<StoreUnavailable>(member("OFFLINE", "1")), HasSubstr("is OFFLINE in its replication"));
  EXPECT_THAT(verdict<StoreUnavailable>(member("ERROR", "0")), HasSubstr("is ERROR in its replication"));
  EXPECT_THAT(verdict<StoreUnavailable>(member("ONLINE", "0")), HasSubstr("reaches no majority"));
  EXPECT_THAT(verdict<StoreUnavailable>(member("ONLINE", "1")), HasSubstr("accepted"));
}

TEST(ServerCheck, ReadsWhatAMemberSaysOfItself) {
  EXPECT_TRUE(membershipIn({.error = 1142}).empty()) << "the account may not read it";
  EXPECT_TRUE(membershipIn({.rows = {{"OFFLINE", "0", "0"}}}).empty()) << "the performance schema is off";
  EXPECT_EQ(membershipIn({.rows = {{"ONLINE", "1", "3"}}})["group_member_state"], "ONLINE");
}

TEST(ServerCheck, TellsARefusedServersReasonsApart) {
  EXPECT_THAT(verdict<ConfigError>({{"read_only", "OFF"}, {"wsrep_on", "ON"}}), HasSubstr("Galera"));
  EXPECT_THAT(verdict<ConfigError>({{"group_replication_group_name", "7ad9f9bc"},
                                    {"group_replication_single_primary_mode", "OFF"}}),
              HasSubstr("single_primary_mode=ON"));
  EXPECT_THAT(verdict<ConfigError>(
                  {{"group_replication_group_name", ""}, {"group_replication_single_primary_mode", "OFF"}}),
              HasSubstr("accepted"));
}

TEST(ServerCheck, WaitsForAPrimaryInThePlaceOfAReplica) {
  for (const char* const value : {"ON", "1", "NO_LOCK", "NO_LOCK_NO_ADMIN"}) {
    EXPECT_THAT(verdict<StoreUnavailable>({{"read_only", value}}), HasSubstr("is read-only")) << value;
  }
  EXPECT_THAT(verdict<StoreUnavailable>({{"innodb_read_only", "ON"}}), HasSubstr("is read-only"));
  for (const char* const value : {"OFF", "0", ""}) {
    EXPECT_THAT(verdict<StoreUnavailable>({{"read_only", value}}), HasSubstr("accepted")) << value;
  }
}

TEST(ServerCheck, SaysWhatACrashDoes) {
  const auto judged = [](const char* flush, const char* binlog, const char* sync) {
    return judgeServer(
        {{"innodb_flush_log_at_trx_commit", flush}, {"log_bin", binlog}, {"sync_binlog", sync}}, "store");
  };
  EXPECT_TRUE(judged("1", "OFF", "0").durable);
  EXPECT_TRUE(judged("1", "ON", "1").durable);
  EXPECT_THAT(judged("1", "OFF", "0").durability, HasSubstr("survives"));
  EXPECT_FALSE(judged("2", "OFF", "0").durable);
  EXPECT_FALSE(judged("0", "ON", "1").durable);
  EXPECT_FALSE(judged("1", "ON", "0").durable) << "what the binary log lacks is undone at the next start";
  EXPECT_THAT(judged("2", "OFF", "0").durability, HasSubstr("may undo"));
  EXPECT_THAT(judged("1", "ON", "100").durability, HasSubstr("sync_binlog = 100"));
}

TEST(ServerCheck, SaysWhatAReplicaMayLack) {
  const auto said = [](ServerSettings settings) {
    return judgeServer(std::move(settings), "store").durability;
  };
  EXPECT_THAT(said({{"log_bin", "OFF"}}), Not(HasSubstr("replica")));
  EXPECT_THAT(said({{"log_bin", "ON"}}), HasSubstr("asynchronous replica that takes over may lack"));
  EXPECT_THAT(said({{"log_bin", "ON"}, {"rpl_semi_sync_master_enabled", "ON"}}),
              HasSubstr("semi-synchronous"));
  EXPECT_THAT(said({{"log_bin", "ON"}, {"rpl_semi_sync_source_enabled", "ON"}}),
              HasSubstr("semi-synchronous"));
  EXPECT_THAT(said({{"log_bin", "ON"}, {"group_replication_group_name", "7ad9f9bc"}}),
              HasSubstr("SELECT on performance_schema.replication_group_members"));
  EXPECT_THAT(said(member("ONLINE", "1")), HasSubstr("a majority of its group"));
}

TEST(ServerCheck, KnowsWhereAFailoverMayLoseCommits) {
  const auto mayLag = [](ServerSettings settings) {
    return judgeServer(std::move(settings), "store").replicaMayLag;
  };
  EXPECT_FALSE(mayLag({{"log_bin", "OFF"}}));
  EXPECT_FALSE(mayLag(member("ONLINE", "1")));
  EXPECT_TRUE(mayLag({{"log_bin", "ON"}, {"group_replication_group_name", "7ad9f9bc"}}))
      << "it may have been started without its group";
  EXPECT_TRUE(mayLag({{"log_bin", "ON"}}));
  EXPECT_TRUE(mayLag({{"log_bin", "ON"}, {"rpl_semi_sync_master_enabled", "ON"}}))
      << "until its time is over";
}

TEST(ServerCheck, KnowsTheVersionsThatKeepSeveralNamesInOneSession) {
  const auto several = [](const char* version) {
    return judgeServer({{"version", version}}, "store").severalNames;
  };
  for (const char* const version :
       {"5.7.5", "5.7.44-log", "8.0.46", "9.7.4", "10.0.2-MariaDB", "10.11.19-MariaDB-0+deb12u1",
        "5.5.5-10.11.19-MariaDB-log", "11.8.6-MariaDB"}) {
    EXPECT_TRUE(several(version)) << version;
  }
  for (const char* const version : {"5.7.4-m14", "5.6.51", "5.5.68-MariaDB", "10.0.1-MariaDB", ""}) {
    EXPECT_FALSE(several(version)) << version;
  }
}

TEST(ServerCheck, RefusesAProxyWithSessionsOfItsOwn) {
  EXPECT_NO_THROW(checkDirect(42, 42, "store"));
  EXPECT_NO_THROW(checkDirect(1, (std::uint64_t{1} << 32U) + 1, "store")) << "the greeting has 32 bits";
  try {
    checkDirect(7, 42, "store");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("behind a proxy"));
  }
}

}  // namespace
}  // namespace lockkeeper::mysql
