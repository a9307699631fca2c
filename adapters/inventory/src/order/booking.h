#pragma once

#include "database/database.h"
#include "database/stock_tables.h"
#include "lockkeeper/inventory/stock_service.h"
#include "lockkeeper/mysql/versioned_row.h"

namespace lockkeeper::inventory {

/// The rows of stock, for the ways that compare versions.
mysql::VersionedRow stockRow(const Environment& environment);

/// Books one order in one transaction, in one of the ways that decide on each order by itself.
class Booking {
 public:
  /// `stock` is stockRow(). `lock` may be null for the ways that do not lock. No transaction begins after
  /// `latest`, and none goes on.
  Booking(Database& database, const mysql::VersionedRow& stock, Way way, const Order& order, const Lock* lock,
          Instant latest)
      : database_(database), stock_(stock), way_(way), order_(order), lock_(lock), latest_(latest) {}

  /// Whatever is not `deducted` has been rolled back. Throws StoreUnavailable and ConfigError, after which
  /// nothing has changed either, and OutcomeUnknown.
  Deduction run();

 private:
  Deduction runOnce();
  Deduction runOptimistically();
  std::optional<mysql::SqlRow> lowered(const mysql::SqlRow& row) const;
  Deduction claimAndTake(StockTables& tables);
  Deduction take(StockTables& tables);
  Deduction unlessMissing(StockTables& tables, Deduction result);
  void refuseIfSplit(std::int64_t buckets) const;
  Deduction lookUp(const OutcomeUnknown& doubt);

  Database& database_;
  const mysql::VersionedRow& stock_;
  const Way way_;
  const Order& order_;
  const Lock* const lock_;
  const Instant latest_;
};

}  // namespace lockkeeper::inventory
