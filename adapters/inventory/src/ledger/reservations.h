#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "database/database.h"
#include "database/reservation_tables.h"

namespace lockkeeper::inventory {

/// Carts that hold goods for a time. Each transaction takes the rows of its articles first, in the order of
/// their skus, then those of reservations, then those of the ledger. Thread-safe. Throws what the database
/// throws; OutcomeUnknown only when it could not be asked what has become of a COMMIT.
class Reservations {
 public:
  /// `who` is for the ledger.
  Reservations(Database& database, std::string who) : database_(database), who_(std::move(who)) {}

  /// `cart` is ordered by sku, and names none twice.
  Reservation reserve(const std::vector<CartLine>& cart, std::chrono::milliseconds ttl, const std::string& id,
                      CartRule rule);

  /// What it holds or held is in the answer.
  /// @{
  Reservation confirm(const std::string& id);
  Reservation extend(const std::string& id, std::chrono::milliseconds ttl);
  Reservation cancel(const std::string& id);
  /// @}

  /// Puts back what has expired of the article, or some of it if that is much. How many lines: 0 when nothing
  /// was left to put back, which costs no write.
  std::size_t putBackExpired(const std::string& sku, Instant latest = Instant::max());
  /// Some articles of which something has expired; empty when there are none.
  std::vector<std::string> skusOfExpired();

 private:
  struct Work;
  using Step = std::function<ReservationState(Work& work, std::span<const ReservedLine> lines)>;

  Reservation settle(const std::string& id, const Step& step);
  std::vector<ReservedLine> linesOf(const std::string& id);
  Reservation decide(Work& work, const std::vector<CartLine>& cart, CartRule rule);
  void take(Work& work, const std::vector<CartLine>& cart, const std::vector<CartLine>& got,
            std::chrono::milliseconds ttl, const std::string& id);
  void end(Work& work, std::span<const ReservedLine> lines, ReservationState state);
  std::size_t putBack(Work& work, const std::string& sku);
  void execute(Work& work, const std::vector<mysql::SqlStatement>& statements);

  Database& database_;
  const std::string who_;
};

}  // namespace lockkeeper::inventory
