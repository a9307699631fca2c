#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/error.h"
#include "session/server_session.h"

namespace lockkeeper::mysql {

// The errors of server and client library as lockkeeper's. `display` names the store in their messages.

inline constexpr unsigned noSuchTable = 1146;

/// What an error number means to us.
enum class FaultKind {
  contention,      ///< Deadlock, or a wait for a row that took too long: a new transaction may succeed.
  connectionLost,  ///< The session is gone, and what it had not committed with it.
  notPrimary,      ///< The server takes no writes any more: another one has taken over.
  misconfigured,   ///< The account, its rights, the tables or a statement are not as they must be.
  commitFailed,    ///< A commit, which may have been carried out all the same.
  refused,         ///< Everything else, such as a full disk: the server answers, but will not do it now.
};

FaultKind kindOf(unsigned error);

/// Somebody, or a time limit of the server, has broken the statement off.
bool isInterrupted(unsigned error);

/// A new transaction may succeed where this one was undone.
class Contention : public StoreUnavailable {
 public:
  using StoreUnavailable::StoreUnavailable;
};

/// The server undid the transaction, because it stood in a cycle of those who wait for rows.
class RowDeadlock : public Contention {
 public:
  using Contention::Contention;
};

/// The server has become a replica: its sessions are of no use any more, a new one may lead to the primary.
class NotPrimary : public StoreUnavailable {
 public:
  using StoreUnavailable::StoreUnavailable;
};

/// The server, or what stands between us and it, answers, but will not do it.
class Refused : public StoreUnavailable {
 public:
  using StoreUnavailable::StoreUnavailable;
};

/// The table is not there.
class NoSuchTable : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Of a log-in that failed: ConfigError for what the administrator must mend, else StoreUnavailable
/// (NotPrimary is such).
[[noreturn]] void throwConnectFault(unsigned error, const std::string& text, const std::string& display);

/// Of a statement that makes a session ready, with which nothing is claimed or charged yet: as throwFault(),
/// but StoreUnavailable for a lost session and for a commit that failed.
[[noreturn]] void throwPreparationFault(const Reply& reply, const std::string& display,
                                        std::string_view schemaFile = {});

/// Of any statement: OutcomeUnknown when the session was lost on the way or a commit failed; ConfigError for
/// what the administrator must mend, which names `schemaFile` where a table is missing; StoreUnavailable for
/// everything else (Contention, NotPrimary and Refused are such): the server has not done it, and may do it
/// later.
[[noreturn]] void throwFault(const Reply& reply, const std::string& display,
                             std::string_view schemaFile = {});

/// Of a GET_LOCK for `key`, on a session that holds the locks `held`: as throwFault(), or Deadlock.
[[noreturn]] void throwLockFault(const Reply& reply, std::string_view key,
                                 const std::vector<std::string>& held, const std::string& display);

}  // namespace lockkeeper::mysql
