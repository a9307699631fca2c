#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hosts/session_rules.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/internal/row_places.h"
#include "lockkeeper/limit/rate_rules.h"
#include "upkeep/unused_rows.h"

// The text of every statement on the table of rate limits. A key is written in hexadecimal, everything else
// is a number, so that nothing in them has to be quoted. Sessions run without autocommit.

namespace lockkeeper::mysql::rates {

using lockkeeper::RowName;

RowName rowOf(std::string_view key, RateKind kind);

/// Keeps to the rows that are named, and does not lock the gaps between them. The server waits for a row no
/// longer than it must: whoever has asked may be gone by then.
inline constexpr SessionRules sessionRules{.autocommit = false};

/// Does nothing, but fails unless charges are allowed.
std::string checkTable();

/// Reads the table, and answers nothing.
std::string readTable();

/// One batch, one round trip: decides on a bucket or a window of the calendar as admit() does, on the
/// server's clock, and commits. Answers granted, the server's time, and the two numbers of the state.
std::string charge(const RateCharge& charge);

/// Answers, for each row that there is: the server's time, family, id, the two numbers of its state, and its
/// log. One row at least: of names that are not there, with NULLs.
std::string readRows(std::span<const RowName> rows);

/// As readRows(), in a transaction that keeps the rows, which are made where they are not there. `rows` in
/// order, so that no two such transactions wait for each other. The server ends the session, and frees the
/// rows, when commit() has not come after `idle`: its client may be paused, or its host gone.
std::string hold(std::span<const RowName> rows, std::chrono::seconds idle);

/// The same for a row that is kept only if it is there.
std::string holdIfThere(const RowName& row, std::chrono::seconds idle);

/// Ends the transaction of hold() or holdIfThere() with these updates.
std::string commit(const std::string& updates);

/// Writes into rows that are held. To be given to commit(). The state is as good as none when `keptFor` µs
/// have passed since its first number.
void addUpdate(std::string& batch, const RowName& row, const RateState& state, std::int64_t keptFor);
void addUpdate(std::string& batch, const RowName& row, std::span<const std::int64_t> log,
               std::int64_t period);

std::string remove(const RowName& row);

/// Rows that have been as good as none for an hour. That is longer than any charge waits for its row: one
/// that has read the clock and then waits must not find gone what the others have used meanwhile, because it
/// would start from its own, earlier time.
UnusedRows::Table unusedRows();

/// How a log is kept.
std::vector<std::int64_t> readLog(std::string_view bytes);

}  // namespace lockkeeper::mysql::rates
