#include "hosts/session_rules.h"

#include <gmock/gmock.h>

#include <string>

#include "lockkeeper/error.h"

namespace lockkeeper::mysql {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

void expectRefusal(const ServerSettings& settings, const SessionRules& rules, const std::string& why) {
  try {
    checkPinned(settings, rules, "store");
    ADD_FAILURE() << why;
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr(why));
  }
}

TEST(SessionRules, AreMissedWhereAProxyDropsThem) {
  EXPECT_NO_THROW(checkPinned({{"completion_type", "NO_CHAIN"}, {"autocommit", "ON"}}, {}, "store"));
  expectRefusal({{"completion_type", "CHAIN"}}, {}, "completion_type = CHAIN");
  expectRefusal({{"character_set_client", "gbk"}}, {}, "character_set_client = gbk");
  expectRefusal({{"autocommit", "ON"}}, {.autocommit = false}, "autocommit = ON");
  expectRefusal({{"transaction_isolation", "READ-COMMITTED"}},
                {.isolation = SessionRules::Isolation::repeatableRead}, "set to REPEATABLE-READ");
  expectRefusal({{"lock_wait_timeout", "86400"}}, {.longestWait = std::chrono::seconds{7}}, "set to 7");
}

TEST(SessionRules, NeedABinaryLogThatTakesWhatTheyWrite) {
  const ServerSettings statements{{"log_bin", "ON"}, {"binlog_format", "STATEMENT"}};
  expectRefusal(statements, {}, "binlog_format = STATEMENT");
  EXPECT_NO_THROW(checkPinned(statements, {.isolation = SessionRules::Isolation::repeatableRead}, "store"));
  EXPECT_NO_THROW(checkPinned({{"log_bin", "OFF"}, {"binlog_format", "STATEMENT"}}, {}, "store"));
}

TEST(SessionRules, AreAllLookedAt) {
  for (const char* const each : {"sql_mode", "character_set_client", "tx_isolation", "binlog_format"}) {
    EXPECT_THAT(pinnedVariables(), Contains(each));
  }
}

}  // namespace
}  // namespace lockkeeper::mysql
