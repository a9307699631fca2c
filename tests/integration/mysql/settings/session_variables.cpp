#include "settings/session_variables.h"

#include <Poco/Data/RecordSet.h>
#include <Poco/StringTokenizer.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>

namespace lockkeeper::test {
namespace {

using Poco::Data::Keywords::now;

std::string quotedText(const std::string& text) { return "'" + text + "'"; }

bool isNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.-") == std::string::npos;
}

bool isMemory(const std::string& variable) {
  return std::ranges::any_of(std::initializer_list<std::string_view>{"size", "buffer", "mem", "space"},
                             [&](std::string_view part) { return variable.find(part) != std::string::npos; });
}

std::vector<std::string> partsOf(const std::string& list) {
  const Poco::StringTokenizer tokens(list, ",", Poco::StringTokenizer::TOK_TRIM);
  return {tokens.begin(), tokens.end()};
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Of MySQL, which does not tell what its variables allow; and of MariaDB's variables that are texts.
const std::map<std::string, std::vector<std::string>> texts = {
    {"binlog_format", {"STATEMENT", "MIXED", "ROW"}},
    {"binlog_row_image", {"MINIMAL", "NOBLOB", "FULL"}},
    {"completion_type", {"CHAIN", "RELEASE"}},
    {"default_storage_engine", {"MyISAM", "MEMORY"}},
    {"default_tmp_storage_engine", {"MyISAM", "MEMORY"}},
    {"enforce_storage_engine", {"MyISAM"}},
    {"explicit_defaults_for_timestamp", {"OFF"}},
    {"internal_tmp_mem_storage_engine", {"MEMORY"}},
    {"lc_messages", {"ja_JP", "de_DE"}},
    {"lc_time_names", {"ja_JP", "ar_AE"}},
    {"session_track_gtids", {"OWN_GTID", "ALL_GTIDS"}},
    {"session_track_system_variables", {"*"}},
    {"session_track_transaction_info", {"STATE", "CHARACTERISTICS"}},
    {"sql_mode",
     {"ANSI", "ANSI_QUOTES", "HIGH_NOT_PRECEDENCE", "IGNORE_SPACE", "NO_BACKSLASH_ESCAPES",
      "NO_UNSIGNED_SUBTRACTION", "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "ONLY_FULL_GROUP_BY",
      "PAD_CHAR_TO_FULL_LENGTH", "PIPES_AS_CONCAT", "REAL_AS_FLOAT", "STRICT_ALL_TABLES",
      "TIME_TRUNCATE_FRACTIONAL", "TRADITIONAL", ""}},
    {"time_zone", {"+13:59", "-12:59"}},
    {"transaction_isolation", {"READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"}},
    {"updatable_views_with_limit", {"NO"}},
    {"use_secondary_engine", {"OFF", "FORCED"}},
};

}  // namespace

SessionVariables::SessionVariables(const DatabaseServer& server)
    : session_("MySQL", server.connectionString("mysql"), 10) {
  // So that MySQL takes the nearest number for one that is out of range.
  execute("SET SESSION sql_mode = ''");
  for (const auto& row : ask("SHOW GLOBAL VARIABLES")) originals_[row[0]] = row[1];
  server.brand() == Brand::mariadb ? readMariadb() : readMysql();
  for (auto& [variable, values] : others_) addTexts(variable);
}

void SessionVariables::readMariadb() {
  for (const auto& row :
       ask("SELECT LOWER(variable_name), variable_type, CAST(COALESCE(enum_value_list, '') AS CHAR(4000)), "
           "COALESCE(numeric_min_value, ''), COALESCE(numeric_max_value, '') FROM "
           "information_schema.system_variables WHERE variable_scope = 'SESSION' AND read_only = 'NO'")) {
    const std::string& type = row[1];
    std::vector<std::string>& values = others_[row[0]];
    if (type == "FLAGSET") {
      // All at once: they tell how the optimizer works. It needs one way to evaluate a subquery.
      for (const char* const value : {"=off", "=on"}) {
        std::string all;
        for (const std::string& each : partsOf(row[2])) {
          const bool needed = each == "materialization" && value == std::string("=off");
          if (each != "default" && !needed) all += (all.empty() ? "" : ",") + each + value;
        }
        values.push_back(quotedText(all));
      }
    } else {
      for (const std::string& each : partsOf(row[2])) values.push_back(quotedText(each));
    }
    if (!isNumber(row[3])) continue;
    values.push_back(row[3]);
    if (type == "DOUBLE") {
      values.push_back("0.001");
    } else {
      values.push_back(row[3] + "+1");
    }
    if (!isMemory(row[0])) values.push_back(row[4]);
  }
}

void SessionVariables::readMysql() {
  for (const auto& [variable, value] : originals_) {
    // Fails unless it is one that a session may set.
    if (!execute("SET SESSION " + variable + " = DEFAULT")) continue;
    std::vector<std::string>& values = others_[variable];
    if (value == "ON") values.push_back("OFF");
    if (value == "OFF") values.push_back("ON");
    if (!isNumber(value)) continue;
    values.insert(values.end(), {"0", "1"});
    if (!isMemory(variable)) values.push_back("4294967295");
  }
  execute("SET SESSION sql_mode = ''");
}

void SessionVariables::addTexts(const std::string& variable) {
  std::vector<std::string>& values = others_[variable];
  if (variable.starts_with("character_set_") && variable != "character_set_filesystem") {
    for (const auto& row :
         ask("SELECT character_set_name FROM information_schema.character_sets ORDER BY 1")) {
      values.push_back(row[0]);
    }
  }
  if (variable == "collation_connection") {
    values.insert(values.end(), {"latin1_german2_ci", "utf8mb4_bin", "gbk_bin", "ucs2_general_ci"});
  }
  if (const auto known = texts.find(variable); known != texts.end() && values.empty()) {
    for (const std::string& each : known->second) values.push_back(quotedText(each));
  }
}

bool SessionVariables::set(const Setting& setting) {
  return execute("SET GLOBAL " + setting.variable + " = " + setting.value);
}

void SessionVariables::restore(std::span<const Setting> settings) {
  for (const Setting& each : settings) {
    const std::string& original = originals_.at(each.variable);
    if (each.variable == "enforce_storage_engine") {
      execute("SET GLOBAL enforce_storage_engine = NULL");
    } else {
      execute("SET GLOBAL " + each.variable + " = " + (isNumber(original) ? original : quotedText(original)));
    }
  }
}

std::vector<std::vector<std::string>> SessionVariables::ask(const std::string& query) {
  const Poco::Data::RecordSet rows(session_, query);
  std::vector<std::vector<std::string>> all(rows.rowCount());
  for (std::size_t row = 0; row < all.size(); ++row) {
    for (std::size_t column = 0; column < rows.columnCount(); ++column) {
      const auto value = rows.value(column, row);
      all[row].push_back(value.isEmpty() ? "" : value.convert<std::string>());
    }
    all[row][0] = lower(all[row][0]);
  }
  return all;
}

bool SessionVariables::execute(const std::string& statement) {
  try {
    session_ << statement, now;
    return true;
  } catch (const Poco::Exception&) {
    return false;
  }
}

}  // namespace lockkeeper::test
