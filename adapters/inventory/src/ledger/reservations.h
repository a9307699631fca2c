#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "combine/call_groups.h"
#include "combine/known_splits.h"
#include "database/database.h"
#include "ledger/group_reserving.h"
#include "ledger/group_settling.h"

namespace lockkeeper::inventory {

/// Carts that hold goods for a time; calls on one article that come together are one transaction.
/// Thread-safe. Throws what the database throws; OutcomeUnknown only when it could not be found out in time
/// what has become of a COMMIT.
class Reservations {
 public:
  /// `who` is for the ledger.
  Reservations(Database& database, KnownSplits& splits, std::string who, const std::shared_ptr<Clock>& clock);

  /// By `latest`. What it has put back by then stays so.
  Reservation reserve(PlacedReservation cart, Instant latest);

  /// By `latest`. What it holds or held is in the answer. The call need not know the articles: they are
  /// written to `skus`, also when the call fails.
  Reservation settle(PlacedSettlement call, Instant latest, std::vector<std::string>* skus = nullptr);

  /// Puts back what has expired of the article, or some of it if that is much. How many lines: 0 when nothing
  /// was left to put back, which costs no write.
  std::size_t putBackExpired(const std::string& sku, Instant latest = Instant::max());
  /// For orders of the article that were refused, the smallest of which wants `least`: whether one of them
  /// may get another answer now. What has expired goes back; others may have put it back, and booked one of
  /// the orders.
  bool mayBeBooked(const std::string& sku, std::int64_t least, std::span<const std::string_view> orderIds,
                   Instant latest = Instant::max());
  /// Some articles of which something has expired; empty when there are none.
  std::vector<std::string> skusOfExpired();

 private:
  void write(std::span<PlacedReservation* const> carts, Instant latest);

  Database& database_;
  KnownSplits& splits_;
  const std::string who_;
  std::mutex mutex_{};
  std::unordered_set<std::string> scarce_{};  // articles of which the last carts found too little
  CallGroups<PlacedReservation> carts_;
  CallGroups<PlacedSettlement> settlements_;
};

}  // namespace lockkeeper::inventory
