#pragma once

#include <chrono>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ledger/reservation_work.h"

namespace lockkeeper::inventory {

/// What one caller wants a reservation to be, and what it is then.
struct PlacedSettlement {
  std::string id{};
  std::vector<std::string> skus{};  ///< Of the reservation, in their order.
  /// confirmed or cancelled: it ends so, if it is held. held: it is held for `ttl` at least.
  ReservationState target = ReservationState::held;
  std::chrono::milliseconds ttl{};
  Reservation result{};
  bool moved = false;  ///< There is no result: the reservation has got lines of other articles meanwhile.
  std::exception_ptr failure{};
  bool inDoubt = false;

  const std::string& sku() const { return skus.front(); }
};

/// Confirms, cancels and extends reservations as one transaction, as if the calls had come one by one.
class GroupSettling {
 public:
  /// `calls` are in the order in which they came, one at least, and all on one and the same article if they
  /// are several. No attempt begins after `latest`, and none goes on. `who` is for the ledger.
  GroupSettling(Database& database, const std::string& who, std::span<PlacedSettlement* const> calls,
                Instant latest)
      : database_(database), who_(who), calls_(calls), latest_(latest) {}

  /// Gives each call a result or a failure: OutcomeUnknown of one that may be done, otherwise what the
  /// database throws.
  void run();

 private:
  using Lines = std::vector<ReservedLine>;

  void settle();
  void answer(PlacedSettlement& call, Lines& lines);
  void end(Lines& lines, ReservationState state);

  Database& database_;
  const std::string& who_;
  const std::span<PlacedSettlement* const> calls_;
  const Instant latest_;

  // Of the transaction under way.
  std::map<ReservationState, Lines> ended_{};
  Lines extended_{};
};

}  // namespace lockkeeper::inventory
