#pragma once

#include <string>

#include "lockkeeper/error.h"

struct pg_result;

namespace lockkeeper::inventory {

/// The server undid the transaction, because others use the same rows.
class PostgresContention : public StoreUnavailable {
 public:
  using StoreUnavailable::StoreUnavailable;
};

/// The server takes no writes: another session may lead to the one that does.
class NotPrimary : public StoreUnavailable {
 public:
  using StoreUnavailable::StoreUnavailable;
};

/// The session ended, or its answer is late.
class LostSession : public StoreUnavailable {
 public:
  using StoreUnavailable::StoreUnavailable;
};

/// Throws the error that the server has answered: LostSession for one that ends the session; for one that
/// has undone the transaction PostgresContention, NotPrimary, ConfigError for what the administrator must
/// mend, and StoreUnavailable for everything else, such as a full disk.
[[noreturn]] void throwFault(const pg_result* result, const std::string& display);

/// The error of a log-in that failed, by the client library's words: ConfigError for what the administrator
/// must mend, else StoreUnavailable.
[[noreturn]] void throwLogInFault(const std::string& words, const std::string& display);

}  // namespace lockkeeper::inventory
