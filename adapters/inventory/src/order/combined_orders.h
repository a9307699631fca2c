#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "combine/call_groups.h"
#include "combine/known_splits.h"
#include "database/database.h"
#include "ledger/reservations.h"
#include "order/group_booking.h"
#include "order/sold_out_memory.h"

namespace lockkeeper::inventory {

/// Way::conditionalUpdate: orders of one article that come together are one transaction, and what is sold out
/// is refused without one. Thread-safe.
class CombinedOrders {
 public:
  /// All of them must outlive it.
  CombinedOrders(Database& database, KnownSplits& splits, Reservations& reservations,
                 const StockOptions& options)
      : database_(database),
        splits_(splits),
        reservations_(reservations),
        soldOut_(database, options.environment.clock, options.rememberSoldOut),
        groups_(options.environment.clock,
                [this](std::span<PlacedOrder* const> orders, Instant latest) { book(orders, latest); }) {}

  /// Whether it is known that the order is sold out, and not booked. Does not block.
  bool refuses(const Order& order) { return soldOut_.judge(order) == SoldOutMemory::Verdict::soldOut; }

  /// Blocks until `latest` at most. Throws as CallGroups and GroupBooking do.
  Deduction deduct(Order order, Instant latest) {
    const PlacedOrder placed = groups_.place({.order = std::move(order)}, latest);
    if (placed.result == Deduction::soldOut) soldOut_.readOn(placed.order.sku, latest);
    return placed.result;
  }

  /// This service has put pieces of the article into stock, or may have.
  void mayHaveMore(const std::string& sku) { soldOut_.forget(sku); }

 private:
  void book(std::span<PlacedOrder* const> orders, Instant latest);
  void refuseSoldOut(std::vector<PlacedOrder*>& orders, Instant latest);
  bool mayBeBooked(std::span<PlacedOrder* const> refused, Instant latest);
  void lookAt(std::span<PlacedOrder* const> refused, Instant latest);

  Database& database_;
  KnownSplits& splits_;
  Reservations& reservations_;
  SoldOutMemory soldOut_;
  CallGroups<PlacedOrder> groups_;
};

}  // namespace lockkeeper::inventory
