#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "connection.h"

namespace lockkeeper::inventory {

struct Order {
  std::string sku;
  std::int64_t quantity;
  std::string orderId;
  std::int64_t attempt;  ///< Random: tells the row that this call wrote from another call's.
};

struct StockRow {
  std::int64_t level;
  std::int64_t version;
};

/// The statements on our tables, on one connection. All throw Poco's exceptions.
class StockTables {
 public:
  explicit StockTables(Connection& connection) : sql_(connection.sql()), dialect_(connection.dialect()) {}

  void createAll();

  /// False when the order id is taken. Waits for a transaction that has written the same id and is still
  /// open.
  bool insertOrder(const Order& order);
  /// Which attempt has written the order, after waiting for transactions that may still write it.
  std::optional<std::int64_t> attemptOf(const std::string& orderId);

  std::optional<StockRow> read(const std::string& sku);
  /// False when the row is not at `version` any more.
  bool write(const std::string& sku, std::int64_t level, std::int64_t version);
  /// False when the row has seen a higher fence, or does not exist.
  bool claim(const std::string& sku, std::int64_t fence);
  /// False when there is less in stock than that, or no such row.
  bool take(const std::string& sku, std::int64_t quantity);

  void add(const std::string& sku, std::int64_t quantity);
  void resetFences();

 private:
  Poco::Data::Session& sql_;
  const Dialect dialect_;
};

}  // namespace lockkeeper::inventory
