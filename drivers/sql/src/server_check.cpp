#include "lockkeeper/sql/server_check.h"

#include <vector>

#include "lockkeeper/error.h"

namespace lockkeeper::sql {
namespace {

ServerSettings readSettings(Poco::Data::Session& session) {
  using Poco::Data::Keywords::into;
  using Poco::Data::Keywords::now;
  std::vector<std::string> names;
  std::vector<std::string> values;
  session << std::string("SHOW GLOBAL VARIABLES WHERE ") + judgedSettings, into(names), into(values), now;
  ServerSettings settings;
  for (std::size_t i = 0; i < names.size(); ++i) settings[names[i]] = values[i];
  return settings;
}

}  // namespace

std::string checkServer(Poco::Data::Session& session, const std::string& display) {
  return judgeServer(readSettings(session), display);
}

std::string judgeServer(ServerSettings settings, const std::string& display) {
  if (settings["read_only"] == "ON" || settings["innodb_read_only"] == "ON") {
    throw ConfigError(display +
                      " is read-only, as a replica is: locks need the server that takes the writes");
  }
  if (settings["wsrep_on"] == "ON") {
    throw ConfigError(display + " is a node of a Galera cluster, which has no locks that hold on all nodes");
  }
  const std::string& flush = settings["innodb_flush_log_at_trx_commit"];
  if (flush == "1") return "InnoDB, flushed at each commit: survives a crash and a power loss of the server";
  return "InnoDB with innodb_flush_log_at_trx_commit = " + flush +
         ": a crash or a power loss of the server may undo the last second";
}

}  // namespace lockkeeper::sql
