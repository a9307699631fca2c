#pragma once

#include <exception>
#include <span>
#include <string>
#include <vector>

#include "combine/known_splits.h"
#include "database/database.h"
#include "database/stock_tables.h"
#include "lockkeeper/inventory/stock_service.h"

namespace lockkeeper::inventory {

/// One caller's order, and what becomes of it.
struct PlacedOrder {
  Order order;
  Deduction result = Deduction::conflict;
  std::exception_ptr failure{};  ///< Why there is no result.

  const std::string& sku() const { return order.sku; }
};

/// Books orders of one article as one transaction, as if they had come one by one.
class GroupBooking {
 public:
  /// `orders` are in the order in which they came, one at least. No attempt begins after `latest`, and none
  /// goes on.
  GroupBooking(Database& database, KnownSplits& splits, std::span<PlacedOrder* const> orders, Instant latest)
      : database_(database), splits_(splits), orders_(orders), latest_(latest) {}

  /// Gives each order a result or a failure: of an order that has certainly not been booked StoreUnavailable,
  /// ConfigError or what is no Error, otherwise OutcomeUnknown.
  void run();

 private:
  void book();
  bool bookAll();
  void bookExactly();
  std::int64_t decide(std::optional<std::int64_t> level, std::span<const BookedOrder> booked);
  void commit(Transaction& transaction);
  void lookUp(const OutcomeUnknown& doubt);
  void fail(const std::exception_ptr& reason);

  Database& database_;
  KnownSplits& splits_;
  const std::span<PlacedOrder* const> orders_;
  const Instant latest_;
  std::vector<const Order*> granted_{};  // by the transaction under way

  // Set while COMMIT may have been sent and what came of it is not known: what those orders get then that it
  // may have booked, and the others. Made before, when there still is memory.
  std::exception_ptr doubt_{};
  std::exception_ptr undone_{};
};

}  // namespace lockkeeper::inventory
