#pragma once

#include <string>
#include <string_view>

#include "lockkeeper/error.h"

struct pg_result;

namespace lockkeeper::postgres {

/// The server undid the statement, because others use the same rows: it may succeed when it is sent again.
class Contention : public StoreUnavailable {
 public:
  using StoreUnavailable::StoreUnavailable;
};

/// The server takes no writes: its sessions are of no use any more, a new one may lead to the primary.
class NotPrimary : public StoreUnavailable {
 public:
  using StoreUnavailable::StoreUnavailable;
};

/// What the session's end or an overdue answer means to what was sent.
enum class Effect {
  none,     ///< Nothing has been changed for good: StoreUnavailable.
  unknown,  ///< OutcomeUnknown.
};

/// Whether this SQLSTATE is an error for which Contention is thrown.
bool isContention(std::string_view state);

/// Whether the server ends the session with this error.
bool endsSession(const pg_result* result);

/// Throws the error that the server has answered. One that leaves the session open has undone what was sent:
/// Contention, NotPrimary, ConfigError for what the administrator must mend, which names `schemaFile` where a
/// table is missing, and StoreUnavailable for everything else, such as a full disk. With one that ends the
/// session, `effect` decides. `display` names the store.
[[noreturn]] void throwFault(const pg_result* result, Effect effect, const std::string& display,
                             std::string_view schemaFile);

/// The error of a log-in that failed, by the client library's words: ConfigError for what the administrator
/// must mend, else StoreUnavailable.
[[noreturn]] void throwLogInFault(const std::string& words, const std::string& display);

}  // namespace lockkeeper::postgres
