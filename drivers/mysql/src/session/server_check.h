#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockkeeper::mysql {

/// A server's variables, by name.
using ServerSettings = std::map<std::string, std::string>;

/// The variables that judgeServer() looks at.
std::vector<std::string> judgedVariables();

/// Answers the name and the value of each of these variables, as they are in the session. Not SELECT @@name,
/// which fails for a name that one of the servers does not know.
std::string askVariables(const std::vector<std::string>& names);

/// Answers, for a member of a replication group: its state; 1 if it reaches a majority; how many members it
/// knows. Refused unless the account may read that table.
extern const char* const askMembership;

struct Reply;

/// What the reply to askMembership says, as settings. Empty when it says nothing.
ServerSettings membershipIn(const Reply& reply);

/// What a server is worth.
struct ServerFacts {
  /// What a crash of the server, or a replica that takes over, does to acknowledged commits: one line for
  /// people.
  std::string durability;
  bool durable = false;        ///< No crash of the server undoes a commit.
  bool replicaMayLag = false;  ///< A replica that takes over may lack commits, if there is one.
  bool severalNames = false;   ///< GET_LOCK keeps several names in one session; older ones free the last.

  friend bool operator==(const ServerFacts&, const ServerFacts&) = default;
};

/// Refuses a server on which locks do not hold: throws NotPrimary for one that is read-only, as a replica is,
/// and for one that its replication group has lost (the next connection may lead to the primary), and
/// ConfigError for a node of a Galera cluster, for a member of a group in which all take writes, and for a
/// server that takes only short statements. `display` names it.
ServerFacts judgeServer(ServerSettings settings, const std::string& display);

/// Whether the session that greeted us as `greeted` is `answered` on the server: a proxy in between has
/// sessions of its own.
bool isDirect(std::uint64_t greeted, std::uint64_t answered);

/// Throws ConfigError unless it is: a lock would be held by a session of the proxy.
void checkDirect(std::uint64_t greeted, std::uint64_t answered, const std::string& display);

/// Whether a value of read_only means that ordinary users cannot write: MariaDB has more of them than ON.
bool isReadOnly(std::string_view readOnly);

}  // namespace lockkeeper::mysql
