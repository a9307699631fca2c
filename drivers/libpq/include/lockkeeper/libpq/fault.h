#pragma once

#include <string>
#include <string_view>

#include "lockkeeper/error.h"

struct pg_result;

namespace lockkeeper::libpq {

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

/// The session has ended, or its answer is overdue. What it has sent may have been applied where
/// Connection::mayHaveApplied() says so.
class LostSession : public StoreUnavailable {
 public:
  using StoreUnavailable::StoreUnavailable;
};

/// What errors say of a store, and which of them its administrator must mend.
struct StoreFaults {
  std::string display;            ///< Names the store.
  std::string missingTable{};     ///< Is added where a table is missing.
  bool valuesAreChecked = false;  ///< A value that a column or a constraint does not take is such an error.
};

/// Whether this SQLSTATE is an error for which Contention is thrown.
bool isContention(std::string_view state);

/// Whether the server ends the session with this error.
bool endsSession(const pg_result* result);

/// Throws the error that the server has answered: LostSession for one that ends the session. One that leaves
/// it open has undone what was sent: Contention, NotPrimary, ConfigError for what the administrator must
/// mend, and StoreUnavailable for everything else, such as a full disk.
[[noreturn]] void throwFault(const pg_result* result, const StoreFaults& store);

/// The error of a log-in that failed, by the client library's words: ConfigError for what the administrator
/// must mend, else StoreUnavailable.
[[noreturn]] void throwLogInFault(const std::string& words, const std::string& display);

}  // namespace lockkeeper::libpq
