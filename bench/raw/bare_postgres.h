#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "contest.h"
#include "lockkeeper/driver/rate_driver.h"

namespace lockkeeper::bench {

/// Makes what plainUpdates() needs.
inline constexpr const char* bareRows =
    "CREATE TABLE bare_rows (id BYTEA PRIMARY KEY, version BIGINT NOT NULL, token BYTEA NOT NULL, "
    "expires_at TIMESTAMPTZ NOT NULL) WITH (fillfactor = 50);"
    "INSERT INTO bare_rows SELECT convert_to('bare:' || n, 'UTF8'), 1, '', now() FROM generate_series(0, 15) "
    "AS n";

/// Hands a row over from one connection to another: an UPDATE that notifies, and one by who listens.
std::function<void()> plainHandOver(std::uint16_t port);

/// Ways on a connection of libpq for each thread, whose caches on the server are warm.
/// @{

/// Takes and releases a lock by two plain UPDATEs of a row.
Way plainUpdates(std::string name, std::uint16_t port);

/// Takes and releases a lock by the driver's own statements, in a session with the driver's settings.
Way sameClaims(std::string name, std::uint16_t port);

/// Charges a limit of this law by the driver's own statement, in a session with the driver's settings.
Way sameCharges(std::string name, std::uint16_t port, const RateLaw& law);

/// @}

}  // namespace lockkeeper::bench
