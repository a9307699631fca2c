#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "session/server_check.h"

namespace lockkeeper::mysql {

/// What differs between the sessions of different users. Everything else that could change what our
/// statements mean is the same for all sessions, and pinned by pinScript(), whatever the server's defaults
/// are.
struct SessionRules {
  enum class Isolation { readCommitted, repeatableRead };

  Isolation isolation = Isolation::readCommitted;
  bool autocommit = true;
  /// For a row or a table that others keep. A wait that outlives its caller holds up the next one.
  std::chrono::seconds longestWait{1};
};

/// The statements that pin these rules in a session. They have no result.
std::string pinScript(const SessionRules& rules);

/// The variables whose values checkPinned() wants to see.
std::vector<std::string> pinnedVariables();

/// Throws ConfigError, with the variable's name, when the server writes only statements to its binary log and
/// the rules need rows there, and when the session's settings are not what pinScript() has
/// set: something between us and the server drops or changes such statements. Variables that the server does
/// not know are not missed. `display` names the server.
void checkPinned(const ServerSettings& settings, const SessionRules& rules, const std::string& display);

}  // namespace lockkeeper::mysql
