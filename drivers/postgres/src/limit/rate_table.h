#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "limit/rate_texts.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/internal/row_places.h"
#include "session/sessions.h"

namespace lockkeeper::postgres {

/// Rate limits as rows of the table lockkeeper_rates (schema/rates.sql), decided by the server on its own
/// clock. Each call is one round trip; a single charge, of whatever kind, is one statement. A key whose row
/// others keep is a LockTimeout: the other keys go on. It has sessions of its own. Thread-safe.
///
/// After fork() the child's copy throws ForkedError.
class RateTable final : public RateDriver {
 public:
  RateTable(const ServerOptions& options, const Environment& environment);

  void take(std::span<RateCharge> charges, Instant deadline) override;
  void peek(std::span<RateCharge> charges, Instant deadline) override;
  bool refund(const RateRefund& refund, Instant deadline) override;
  void reset(std::string_view key, RateKind kind, Instant deadline) override;
  std::string name() const override { return sessions_.options().display; }

 private:
  /// What `call` returns for a session, while no more callers than there are places wait for the rows, which
  /// are in order. Throws LockTimeout when others keep one.
  template <class Call>
  auto onRows(const std::vector<RowName>& rows, Instant deadline, Call call);
  /// Throws StoreUnavailable when the server does not answer.
  void checkAnswers(Instant deadline);
  /// Makes and locks the rows, and asks the statement in the same transaction.
  Result afterLocking(Session& session, const std::string& text, std::vector<Value> values,
                      Instant deadline) const;
  /// How long a statement may wait for a row.
  Value longestWait(Instant deadline) const;
  /// $1 to $9 of RateTexts.
  std::vector<Value> valuesOf(std::span<const RateCharge> charges, Instant deadline) const;
  void readOutcomes(const Result& result, std::span<RateCharge> charges) const;
  /// Throws ProtocolError unless the column says that the row holds a limit.
  void checkRow(const Result& result, std::size_t row, std::size_t column) const;
  void clearAfter(std::size_t charges, Instant deadline) noexcept;

  const ForkGuard forkGuard_;
  const RateTexts texts_;
  Sessions sessions_;
  Sessions check_;  // Of one: those may all wait for rows.
  RowPlaces places_;
  std::atomic<std::uint64_t> charges_;
};

}  // namespace lockkeeper::postgres
