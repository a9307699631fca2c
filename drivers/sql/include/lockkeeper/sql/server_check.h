#pragma once

#include <Poco/Data/Session.h>

#include <map>
#include <string>

namespace lockkeeper::sql {

/// A server's variables, by name.
using ServerSettings = std::map<std::string, std::string>;

/// The variables that judgeServer() looks at: a condition for SHOW GLOBAL VARIABLES, because SELECT @@name
/// fails for a name that one of the servers does not know.
inline constexpr const char* judgedSettings =
    "variable_name IN ('read_only', 'innodb_read_only', 'wsrep_on', 'innodb_flush_log_at_trx_commit')";

/// Refuses a server on which locks do not hold: throws ConfigError, told apart, for one that is read-only
/// (such as a replica) and for a node of a Galera cluster. `display` names it. Returns what a crash of the
/// server does to what it has acknowledged, in one line for people.
std::string judgeServer(ServerSettings settings, const std::string& display);

/// Asks the server and judges it. One round trip; throws Poco's exceptions, too.
std::string checkServer(Poco::Data::Session& session, const std::string& display);

}  // namespace lockkeeper::sql
