#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backend.h"

namespace lockkeeper::inventory {

struct Order {
  std::string sku;
  std::int64_t quantity;
  std::string orderId;
  std::int64_t attempt;  ///< Random: tells the row that this call wrote from another call's.
};

/// The statements on our tables, in one transaction. All throw what that throws.
class StockTables {
 public:
  StockTables(Transaction& transaction, Dialect dialect) : transaction_(transaction), dialect_(dialect) {}

  void createAll();

  /// False when the order id is taken. Waits for a transaction that has written the same id and is still
  /// open.
  bool insertOrder(const Order& order);
  /// Which attempt has written the order, after waiting for transactions that may still write it.
  std::optional<std::int64_t> attemptOf(const std::string& orderId);
  /// Counts up the version of a booked order's article, so that there is something to commit.
  void touchArticleOf(const std::string& orderId);

  std::optional<std::int64_t> level(const std::string& sku);
  /// False when the row has seen this fence or a higher one, or does not exist.
  bool claim(const std::string& sku, std::int64_t fence);
  /// False when there is less in stock than that, or no such row.
  bool take(const std::string& sku, std::int64_t quantity);

  void add(const std::string& sku, std::int64_t quantity);
  void resetFences();

 private:
  std::optional<std::int64_t> number(const std::string& select, const std::string& value);

  Transaction& transaction_;
  const Dialect dialect_;
};

}  // namespace lockkeeper::inventory
