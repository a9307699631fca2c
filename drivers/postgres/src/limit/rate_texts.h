#pragma once

#include <string>

namespace lockkeeper::postgres {

/// The statements on the table of rate limits, which decide as limit/rate_rules.h says.
///
/// In most of them $1 is how long to wait for a row, as a setting. $2 to $9 are arrays with one element for
/// each charge: family, key, cost, times; period and parts of the law; µs and parts of the room that a bucket
/// has, or the limit of a window and 0. They return for each charge, in that order: how often it was granted,
/// the server's time, the two numbers of a RateReading's state, its leavesFirst, and whether all numbers of
/// the row can be a limit's.
struct RateTexts {
  explicit RateTexts(const std::string& schema);

  /// Of one charge: a statement that is a transaction of its own. It reads the clock before it waits for its
  /// row: what others have charged by then counts.
  std::string charge;

  /// Of several, in one transaction: `boundStatement`, with $1, bounds the wait for all rows together.
  /// `lockRows`, whose $1 and $2 are the families and the keys, makes and locks them in the order of all such
  /// transactions. Then `chargeAll` sees what others have committed before, and charges all of them or none.
  std::string boundStatement;
  std::string lockRows;
  std::string chargeAll;

  /// What charge and chargeAll would return.
  std::string peek;

  /// In the place of chargeAll: gives the cost back. $10 and $11 are µs and parts of the end of the slot that
  /// is meant, or NULL. Returns whether it was given, and whether all numbers of the row can be a limit's.
  std::string refund;

  /// $2 and $3 are the family and the key.
  std::string reset;

  /// Deletes rows that have been unused for an hour, which is longer than any charge waits: one that has read
  /// the clock must not find gone what the others have used. Skips rows that others keep.
  std::string clearUnused;
};

/// What makes the table.
std::string ratesSchemaOf(const std::string& schema);

}  // namespace lockkeeper::postgres
