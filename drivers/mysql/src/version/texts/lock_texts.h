#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "session/server_session.h"
#include "session/statements/sql_text.h"
#include "upkeep/unused_rows.h"

// What the statements on the tables of locks and of shares have in common. A row of a lock is called l in
// statements on both tables.

namespace lockkeeper::mysql {

/// What is said again and again on the tables of one driver.
struct LockTexts {
  explicit LockTexts(const std::string& itsTable);

  const std::string table;   ///< Of the locks: its name, quoted.
  const std::string shares;  ///< The table of the shares.
  /// A key that is free is kept for the one that waits for it: see Standing.
  const std::string isClosed;
  const std::string keptMark;  ///< What is left of the owner when nobody has the row any more.
  const std::string isLone;    ///< The row is held by a share without others: see isLoneOwner.
  const std::string unmarked;  ///< The owner without the mark of a waiter.
  const std::string freed;     ///< The assignments that free a row.
  const std::string release;

  /// As what a claim asks for a key. One that waits writes a mark behind the owner of the row, "@" and a time
  /// in microseconds, until which the key is closed to newcomers. An upgrade, which is ahead of all others,
  /// writes "@@".
  enum class Standing {
    newcomer,       ///< Leaves a key alone that somebody waits for.
    first,          ///< The first in the queue, or one that has found no place in it: waits only for an
                    ///< upgrade.
    upgrade,        ///< Has a share of the key, for which the others wait.
    waitingUpgrade  ///< The same; will ask again.
  };

  /// What of it makes the statements differ.
  struct ByStanding {
    ByStanding(const LockTexts& texts, Standing standing);

    const std::string closed;  ///< A key that is free is closed to the claim.
    const std::string marked;  ///< The owner of a row that the claim has not got.
    const std::string claim;
    const std::string loneClaim;
  };
  const ByStanding& as(Standing standing) const { return byStanding_[static_cast<std::size_t>(standing)]; }

 private:
  const std::array<ByStanding, 4> byStanding_;
};

/// Rows of locks that have been free for a day.
UnusedRows::Table unusedRows(const LockTexts& texts);

/// What makes the table of locks of this name.
std::string schemaOf(const std::string& table);
/// What makes that of its shares.
std::string sharesSchemaOf(const std::string& table);

// UTC_TIMESTAMP does not depend on the session's time zone, and has no hour that comes twice. It is the time
// at which the statement began: a statement that waited for a row grants a shorter lease, never a longer one.
inline constexpr const char* remaining = "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at)";
inline constexpr const char* isHeld = "token <> '' AND expires_at > UTC_TIMESTAMP(6)";

/// The server returns one number with a claim. With this mark, it is how long the key stays taken.
inline constexpr std::uint64_t busyMark = std::uint64_t{1} << 62U;
/// With this one, it is the fence of a claim that holds the key already. Otherwise it is the first new fence.
inline constexpr std::uint64_t foundMark = std::uint64_t{1} << 61U;

/// The row is that of a key whose shares are in their table: its token has the limit and the sum of the
/// weights, "shares/7/3". Instead of an owner, it may have the mark of a waiter.
inline constexpr const char* isShared = "(l.token LIKE 'shares/%' AND l.expires_at > UTC_TIMESTAMP(6))";

/// Where it `isShared`:
/// @{
inline constexpr const char* limitOfShares = "CAST(SUBSTRING_INDEX(SUBSTRING(l.token, 8), '/', 1) AS SIGNED)";
inline constexpr const char* takenByShares = "CAST(SUBSTRING_INDEX(l.token, '/', -1) AS SIGNED)";
/// @}

/// The row is that of a share without others. It has the token of its claim, as for a claim of the whole key,
/// and differs from that in its owner, "web-1:7@2/3@0": the name, the weight and the limit, and the mark of a
/// waiter or 0. Names contain no '@'. An older version may leave such an owner in a row that is shared.
/// @{
inline constexpr const char* isLoneOwner = "owner LIKE '%@%/%@%'";
inline constexpr const char* nameOfLone = "SUBSTRING_INDEX(l.owner, '@', 1)";
inline constexpr const char* weightOfLone =
    "CAST(SUBSTRING_INDEX(SUBSTRING_INDEX(SUBSTRING_INDEX(l.owner, '@', 2), '@', -1), '/', 1) AS SIGNED)";
inline constexpr const char* limitOfLone =
    "CAST(SUBSTRING_INDEX(SUBSTRING_INDEX(SUBSTRING_INDEX(l.owner, '@', 2), '@', -1), '/', -1) AS SIGNED)";
/// @}

/// For so many microseconds a key is closed to newcomers after one that waits has asked for it. One that
/// waits asks more often.
inline constexpr std::chrono::microseconds priority = std::chrono::seconds{1};

/// A mark that is as far ahead as this, or farther, need not be written again.
inline constexpr std::chrono::microseconds newMark = priority * 4 / 5;

inline std::string inMicroseconds(std::chrono::microseconds length) { return std::to_string(length.count()); }

}  // namespace lockkeeper::mysql
