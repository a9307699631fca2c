#include "hosts/session_rules.h"

#include <string_view>

#include "lockkeeper/error.h"

namespace lockkeeper::mysql {
namespace {

constexpr std::string_view everywhere = "";

struct Pin {
  std::string name;
  std::string value;           ///< As it stands in a SET.
  std::string shown;           ///< As SHOW VARIABLES answers it.
  std::string_view servers{};  ///< What begins a comment that only the servers execute which know it.
};

std::string isolationIn(const SessionRules& rules, char space) {
  const bool repeatable = rules.isolation == SessionRules::Isolation::repeatableRead;
  return std::string(repeatable ? "REPEATABLE" : "READ") + space + (repeatable ? "READ" : "COMMITTED");
}

// Comments of the form /*M!100100 … */ are for MariaDB from 10.1.0 on, /*!50709 … */ for MySQL from 5.7.9 on.
std::vector<Pin> pins(const SessionRules& rules) {
  const std::string wait = std::to_string(rules.longestWait.count());
  return {
      {"autocommit", rules.autocommit ? "1" : "0", rules.autocommit ? "ON" : "OFF"},
      // CHAIN makes COMMIT open the next transaction, RELEASE makes it end the session.
      {"completion_type", "'NO_CHAIN'", "NO_CHAIN"},
      // Nothing is cut to fit, nothing is made in another engine, and no mode changes what operators mean.
      {"sql_mode", "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'", "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"},
      {"time_zone", "'+00:00'", "+00:00"},
      {"innodb_lock_wait_timeout", wait, wait},
      {"lock_wait_timeout", wait, wait},
      {"sql_safe_updates", "0", "OFF"},
      {"sql_select_limit", "18446744073709551615", "18446744073709551615"},
      {"sql_big_selects", "1", "ON"},
      {"sql_auto_is_null", "0", "OFF"},
      {"unique_checks", "1", "ON"},
      {"foreign_key_checks", "1", "ON"},
      // Keys of 512 bytes are sorted by all of them.
      {"max_sort_length", "1024", "1024"},
      {"sort_buffer_size", "262144", "262144"},
      // Our waits have limits of their own.
      {"max_statement_time", "0", "0.000000", "M!100100"},
      // The list of sessions is a temporary table on the disk.
      {"tmp_disk_table_size", "18446744073709551615", "18446744073709551615", "M!100500"},
      {"max_session_mem_used", "9223372036854775807", "9223372036854775807", "M!100107"},
      {"check_constraint_checks", "1", "ON", "M!100201"},
      // Or the rows of long lists are found, and locked, in another order than by their index.
      {"in_predicate_conversion_threshold", "0", "0", "M!100318"},
      {"max_execution_time", "0", "0", "!50708"},
      {"range_optimizer_max_mem_size", "0", "0", "!50709"},
  };
}

/// What other statements than SET … = … pin.
ServerSettings pinnedOtherwise(const SessionRules& rules) {
  const std::string isolation = isolationIn(rules, '-');
  return {{"character_set_client", "utf8mb4"},
          {"character_set_connection", "utf8mb4"},
          {"character_set_results", "utf8mb4"},
          // Each server knows one of the names, or both.
          {"transaction_isolation", isolation},
          {"tx_isolation", isolation},
          {"transaction_read_only", "OFF"},
          {"tx_read_only", "OFF"}};
}

ServerSettings expected(const SessionRules& rules) {
  ServerSettings all = pinnedOtherwise(rules);
  for (const Pin& each : pins(rules)) all.emplace(each.name, each.shown);
  return all;
}

}  // namespace

std::string pinScript(const SessionRules& rules) {
  std::string script =
      "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci;SET SESSION TRANSACTION ISOLATION LEVEL " +
      isolationIn(rules, ' ') + ",READ WRITE;SET SESSION ";
  bool first = true;
  for (const Pin& each : pins(rules)) {
    std::string assignment = (first ? "" : ",") + each.name + "=" + each.value;
    first = false;
    script +=
        each.servers == everywhere ? assignment : "/*" + std::string(each.servers) + " " + assignment + "*/";
  }
  return script;
}

std::vector<std::string> pinnedVariables() {
  std::vector<std::string> names{"binlog_format"};
  for (const auto& [name, value] : expected({})) names.push_back(name);
  return names;
}

void checkPinned(const ServerSettings& settings, const SessionRules& rules, const std::string& display) {
  for (const auto& [name, value] : expected(rules)) {
    const auto found = settings.find(name);
    if (found == settings.end() || found->second == value) continue;
    throw ConfigError(display + ": the session has " + name + " = " + found->second +
                      " although it has been set to " + value +
                      ": a proxy on the way must pass on what a client sets");
  }
  const auto has = [&](const char* name, const char* value) {
    const auto found = settings.find(name);
    return found != settings.end() && found->second == value;
  };
  const bool readsCommitted = rules.isolation == SessionRules::Isolation::readCommitted;
  if (readsCommitted && has("log_bin", "ON") && has("binlog_format", "STATEMENT")) {
    throw ConfigError(display +
                      " has binlog_format = STATEMENT: it must be ROW or MIXED, because the server writes no "
                      "statements of READ COMMITTED transactions to its binary log");
  }
}

}  // namespace lockkeeper::mysql
