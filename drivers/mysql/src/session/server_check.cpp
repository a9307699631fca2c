#include "session/server_check.h"

#include <charconv>
#include <tuple>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/whole_number.h"
#include "session/reply_fault.h"
#include "session/server_session.h"

namespace lockkeeper::mysql {
namespace {

using Version = std::tuple<int, int, int>;

constexpr const char* memberState = "group_member_state";
constexpr const char* memberMajority = "group_member_majority";

bool isMariadb(std::string_view version) { return version.find("MariaDB") != std::string_view::npos; }

// "10.11.19-MariaDB-0+deb12u1"; some versions put "5.5.5-" before, for old replicas.
Version parseVersion(std::string_view text) {
  constexpr std::string_view prefix = "5.5.5-";
  if (isMariadb(text) && text.starts_with(prefix)) text.remove_prefix(prefix.size());
  const auto next = [&text] {
    int number = 0;
    const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    if (text.starts_with('.')) text.remove_prefix(1);
    return number;
  };
  const int major = next();
  const int minor = next();
  return {major, minor, next()};
}

bool holdsSeveralNames(std::string_view version) {
  return parseVersion(version) >= (isMariadb(version) ? Version{10, 0, 2} : Version{5, 7, 5});
}

// The servers do not tell ordinary users whether there are replicas. Semi-synchronous ones that do not answer
// in time are not waited for any more.
void judgeReplication(ServerSettings& settings, ServerFacts& facts) {
  if (settings["log_bin"] != "ON") return;
  const bool inGroup = !settings["group_replication_group_name"].empty();
  if (inGroup && settings[memberState] == "ONLINE") {
    facts.durability += "; a majority of its group has received them";
    return;
  }
  if (inGroup) {
    facts.replicaMayLag = true;
    facts.durability +=
        "; whether its group has received them is not known: the account needs SELECT on "
        "performance_schema.replication_group_members to see that";
    return;
  }
  const bool waits =
      settings["rpl_semi_sync_master_enabled"] == "ON" || settings["rpl_semi_sync_source_enabled"] == "ON";
  facts.replicaMayLag = true;
  facts.durability += waits ? "; a semi-synchronous replica has received them, unless it was too slow"
                            : "; an asynchronous replica that takes over may lack the last of them";
}

// One claim of a share with the longest key takes about 15 KB; a batch is as long as its caller makes it.
void checkPacket(const std::string& shown, const std::string& display) {
  constexpr std::uint64_t leastPacket = std::uint64_t{64} * 1024;
  const auto bytes = wholeNumber<std::uint64_t>(shown);
  if (!bytes || *bytes >= leastPacket) return;
  throw ConfigError(display + " has max_allowed_packet = " + shown + ": statements need at least " +
                    std::to_string(leastPacket));
}

}  // namespace

std::vector<std::string> judgedVariables() {
  return {"version",
          "read_only",
          "innodb_read_only",
          "wsrep_on",
          "innodb_flush_log_at_trx_commit",
          "log_bin",
          "sync_binlog",
          "rpl_semi_sync_master_enabled",
          "rpl_semi_sync_source_enabled",
          "group_replication_group_name",
          "group_replication_single_primary_mode",
          "group_replication_consistency",
          "max_allowed_packet",
          "server_uuid",
          "server_uid",
          "server_id",
          "hostname",
          "port"};
}

std::string askVariables(const std::vector<std::string>& names) {
  std::string text = "SHOW SESSION VARIABLES WHERE variable_name IN (";
  for (const std::string& each : names) text += (&each == &names.front() ? "'" : ",'") + each + "'";
  return text + ")";
}

// Without group replication there is one row, with no ID; without the performance schema none.
const char* const askMembership =
    "SELECT COALESCE(MAX(IF(member_id=@@server_uuid,member_state,NULL)),'OFFLINE'),"
    "COALESCE(SUM(member_state='UNREACHABLE'),0)*2<COUNT(*),COUNT(*) "
    "FROM performance_schema.replication_group_members";

ServerSettings membershipIn(const Reply& reply) {
  if (reply.error != 0 || reply.number(2).value_or(0) == 0) return {};
  return {{memberState, reply.text(0)}, {memberMajority, reply.text(1)}};
}

bool isReadOnly(std::string_view readOnly) {
  return !readOnly.empty() && readOnly != "OFF" && readOnly != "0";
}

ServerFacts judgeServer(ServerSettings settings, const std::string& display) {
  if (isReadOnly(settings["read_only"]) || isReadOnly(settings["innodb_read_only"])) {
    throw NotPrimary(display + " is read-only, as a replica is: locks need the server that takes the writes");
  }
  if (settings["wsrep_on"] == "ON") {
    throw ConfigError(display + " is a node of a Galera cluster, which has no locks that hold on all nodes");
  }
  if (!settings["group_replication_group_name"].empty() &&
      settings["group_replication_single_primary_mode"] == "OFF") {
    throw ConfigError(display +
                      " belongs to a group in which all members take writes, which has no locks that hold on "
                      "all of them: group_replication_single_primary_mode=ON is needed");
  }
  const auto state = settings.find(memberState);
  if (state != settings.end() && (state->second != "ONLINE" || settings[memberMajority] != "1")) {
    throw NotPrimary(display + " is " + state->second + " in its replication group" +
                     (state->second == "ONLINE" ? ", but reaches no majority of it" : ""));
  }
  checkPacket(settings["max_allowed_packet"], display);
  ServerFacts facts;
  facts.severalNames = holdsSeveralNames(settings["version"]);
  const std::string& flush = settings["innodb_flush_log_at_trx_commit"];
  const std::string& sync = settings["sync_binlog"];
  // What is in the log of InnoDB but not in the binary log is undone when the server starts again.
  const bool binlogKept = settings["log_bin"] != "ON" || sync == "1";
  facts.durable = flush == "1" && binlogKept;
  facts.durability = facts.durable
                         ? "InnoDB, flushed at each commit: survives a crash and a power loss of the server"
                         : "InnoDB with innodb_flush_log_at_trx_commit = " + flush +
                               (binlogKept ? "" : " and sync_binlog = " + sync) +
                               ": a crash or a power loss of the server may undo the last commits";
  judgeReplication(settings, facts);
  return facts;
}

bool isDirect(std::uint64_t greeted, std::uint64_t answered) {
  // The greeting has room for 32 bits.
  return (greeted & 0xffffffffU) == (answered & 0xffffffffU);
}

void checkDirect(std::uint64_t greeted, std::uint64_t answered, const std::string& display) {
  if (isDirect(greeted, answered)) return;
  throw ConfigError(display +
                    " is behind a proxy that has sessions of its own: mysql+getlock needs the server itself, "
                    "or a proxy that passes on bytes");
}

}  // namespace lockkeeper::mysql
