#include "lockkeeper/sql/server_check.h"

#include "lockkeeper/error.h"

#include <gtest/gtest.h>

namespace lockkeeper::sql {
namespace {

std::string refusal(const ServerSettings& settings) {
  try {
    return "accepted: " + judgeServer(settings, "store");
  } catch (const ConfigError& error) {
    return error.what();
  }
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(ServerCheck, TellsARefusedServersReasonsApart) {
  EXPECT_TRUE(contains(refusal({{"read_only", "ON"}, {"wsrep_on", "OFF"}}), "read-only"));
  EXPECT_TRUE(contains(refusal({{"read_only", "OFF"}, {"innodb_read_only", "ON"}}), "read-only"));
  EXPECT_TRUE(contains(refusal({{"read_only", "OFF"}, {"wsrep_on", "ON"}}), "Galera"));
}

TEST(ServerCheck, SaysWhatACrashDoes) {
  EXPECT_TRUE(contains(refusal({{"innodb_flush_log_at_trx_commit", "1"}}), "survives"));
  EXPECT_TRUE(contains(refusal({{"innodb_flush_log_at_trx_commit", "2"}}), "may undo"));
}

}  // namespace
}  // namespace lockkeeper::sql
