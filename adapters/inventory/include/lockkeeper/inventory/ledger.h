#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace lockkeeper::inventory {

/// One change of an article's stock.
struct LedgerEntry {
  std::string reason;       ///< "order", "restock", "return", or "opening": what was there before the ledger.
  std::string id;           ///< Of the order, the restock or the return; of an opening, the sku.
  std::int64_t amount = 0;  ///< Orders take: theirs is negative.
  std::string orderId{};    ///< Of a return: the order that it belongs to. Otherwise empty.
  std::string who{};        ///< StockOptions::who of the service that made the change.
  /// By the database's clock. Empty when a former version has written the entry.
  std::optional<std::chrono::sys_time<std::chrono::milliseconds>> at{};
  /// What was in stock then. Empty while the article is split, and when a former version has written the
  /// entry.
  std::optional<std::int64_t> levelAfter{};
};

/// An article whose stock is not the sum of its ledger: somebody has written the tables past StockService.
struct Discrepancy {
  std::string sku;
  std::int64_t level = 0;   ///< What is in stock.
  std::int64_t ledger = 0;  ///< What should be.
};

}  // namespace lockkeeper::inventory
