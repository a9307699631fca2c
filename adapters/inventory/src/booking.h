#pragma once

#include <Poco/Exception.h>

#include "connection_pool.h"
#include "lockkeeper/inventory/stock_service.h"
#include "stock_tables.h"

namespace lockkeeper::inventory {

/// Books one order in one transaction, in one of the ways.
class Booking {
 public:
  /// `lock` may be null for Way::conditionalUpdate only.
  Booking(ConnectionPool& pool, Way way, const Order& order, const Lock* lock)
      : pool_(pool), way_(way), order_(order), lock_(lock) {}

  /// Whatever is not `deducted` has been rolled back. Throws Poco's exceptions, after which nothing has
  /// changed either, and OutcomeUnknown.
  Deduction run();

 private:
  Deduction takeStock(StockTables& tables);
  Deduction readAndWrite(StockTables& tables);
  Deduction claimAndTake(StockTables& tables);
  Deduction take(StockTables& tables);
  Deduction unlessMissing(StockTables& tables, Deduction result);
  Deduction lookUp(const Poco::Exception& commitFailure);

  ConnectionPool& pool_;
  const Way way_;
  const Order& order_;
  const Lock* const lock_;
};

}  // namespace lockkeeper::inventory
