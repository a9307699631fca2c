#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/server_login.h"
#include "lockkeeper/libpq/connection.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::libpq {

/// ServerLogin::read() for PostgreSQL, which needs a user.
ServerLogin readLogin(const StoreUri& uri);

/// In a SELECT: the server's time, in us.
inline constexpr const char* serverTime =
    "(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) "
    "1000000)::pg_catalog.int8";

/// What a server has said to that, and when.
struct ServerTime {
  std::int64_t value = 0;
  Instant heardAt{};
};

/// What a server has said of itself and of the session when that was new.
struct ServerFacts {
  bool isDirect = false;  ///< No pooler gives our statements to sessions of its own.
  /// Its process, and when that began: a condition on pg_stat_activity. Empty for a pooler.
  std::string backend{};
  std::string started{};  ///< When the server was: another server, or one that lacks commits, has another.
  std::uint32_t timeline = 0;  ///< Counts the promotions; 0 unless several hosts are named.
  ServerTime time{};
  bool survivesCrash = false;  ///< No crash of the server undoes a commit.
  bool mayLag = false;         ///< A standby that takes over may lack commits.
};

struct LoggedIn {
  Handle handle;
  std::size_t host;  ///< Its number in ServerLogin::hosts.
  ServerFacts facts;
};

/// Asks the hosts of the log-in at once, or `only` one, and returns a session with the one that takes writes:
/// of several, the one that was promoted last. `pins` is what pinning() returns; a pooler's session is not
/// pinned.
///
/// Blocks until `until`, and for the lookup of a host's name; addresses that do not answer share the time.
/// Throws ConfigError for what the administrator must mend, NotPrimary for one host that takes no writes, and
/// otherwise StoreUnavailable. No environment variable and no file of the user's changes how it connects: one
/// that the client library would obey is a ConfigError.
LoggedIn logIn(const ServerLogin& login, std::optional<std::size_t> only, const std::string& pins,
               const Clock& clock, Instant until);

}  // namespace lockkeeper::libpq
