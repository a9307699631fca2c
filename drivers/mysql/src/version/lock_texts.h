#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "lockkeeper/internal/whole_number.h"
#include "session/server_session.h"
#include "session/sql_text.h"

// What the statements on the tables of locks and of shares have in common. A row of a lock is called l in
// statements on both tables.

namespace lockkeeper::mysql {

/// What is said again and again on the tables of one driver.
struct LockTexts {
  explicit LockTexts(const std::string& itsTable);

  const std::string table;   ///< Of the locks: its name, quoted.
  const std::string shares;  ///< The table of the shares.
  const std::string
      waiterMark;  ///< What one that waits for those who share the key writes instead of an owner.
  const std::string claim;
  const std::string release;
  const std::string sharesSchema;  ///< What makes that one.
};

/// What makes the table of locks, or of shares, of this name.
std::string schemaOf(const std::string& table, bool ofShares);

// UTC_TIMESTAMP does not depend on the session's time zone, and has no hour that comes twice. It is the time
// at which the statement began: a statement that waited for a row grants a shorter lease, never a longer one.
inline constexpr const char* remaining = "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at)";
inline constexpr const char* isHeld = "token <> '' AND expires_at > UTC_TIMESTAMP(6)";
inline constexpr const char* freed = "token = '', owner = '', expires_at = UTC_TIMESTAMP(6)";

/// Tells how long a key stays taken from a fence, in the one number that the server returns with a claim.
inline constexpr std::uint64_t busyMark = std::uint64_t{1} << 62U;

/// The row is that of a key which is shared: its token has the limit and the sum of the weights,
/// "shares/7/3". Instead of an owner, it may have "@" and a time in microseconds: a claim of the whole key
/// waits, and no new share is granted until then.
inline constexpr const char* isShared = "(l.token LIKE 'shares/%' AND l.expires_at > UTC_TIMESTAMP(6))";

/// For so many microseconds no new share is granted after a claim of the whole key, or an upgrade, has found
/// the key shared. One that waits asks more often.
inline constexpr const char* priority = "1000000";

/// Where it `isShared`:
/// @{
inline constexpr const char* limitOfShares = "CAST(SUBSTRING_INDEX(SUBSTRING(l.token, 8), '/', 1) AS SIGNED)";
inline constexpr const char* takenByShares = "CAST(SUBSTRING_INDEX(l.token, '/', -1) AS SIGNED)";
/// @}

inline std::string literal(std::string_view bytes) {
  std::string text;
  addHexadecimal(text, bytes);
  return text;
}

inline std::string inMicroseconds(std::chrono::milliseconds ttl) {
  return std::to_string(std::chrono::microseconds(ttl).count());
}

inline std::int64_t numberIn(const std::optional<std::string>& field) {
  return field ? wholeNumber<std::int64_t>(*field).value_or(0) : 0;
}

}  // namespace lockkeeper::mysql
