#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace lockkeeper::inventory {

/// One change of an article's stock.
struct LedgerEntry {
  std::string reason;       ///< "order", "restock", "return", or "opening": the stock when the ledger began.
  std::string id;           ///< The id of the order, restock or return; for an opening, the sku.
  std::int64_t amount = 0;  ///< Negative for orders.
  std::string orderId{};    ///< For a return: the order that it belongs to. Otherwise empty.
  std::string who{};        ///< StockOptions::who of the service that made the change.
  /// By the database's clock. Empty if an earlier version of lockkeeper wrote the entry.
  std::optional<std::chrono::sys_time<std::chrono::milliseconds>> at{};
  /// The stock after the change. Empty if the article was split then, or if an earlier version of lockkeeper
  /// wrote the entry.
  std::optional<std::int64_t> levelAfter{};
};

/// An article whose stock is not the sum of its ledger, because its rows were not written by StockService.
struct Discrepancy {
  std::string sku;
  std::int64_t level = 0;   ///< The stock.
  std::int64_t ledger = 0;  ///< The sum of the ledger.
};

}  // namespace lockkeeper::inventory
