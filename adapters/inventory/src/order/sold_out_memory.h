#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "database/database.h"
#include "database/stock_tables.h"

namespace lockkeeper::inventory {

/// Articles of which there was too little a moment ago: orders that want more are refused without a
/// transaction, unless they may be booked already. Thread-safe.
class SoldOutMemory {
 public:
  /// What was read is remembered for `length`; 0: not at all.
  SoldOutMemory(Database& database, std::shared_ptr<Clock> clock, std::chrono::milliseconds length);

  /// What is known of an order.
  enum class Verdict {
    open,          ///< There may be enough for it, or it is booked.
    soldOut,       ///< It is sold out.
    unlessBooked,  ///< It is sold out, unless it is booked: the article has too many orders to remember.
  };
  /// Does not block.
  Verdict judge(const Order& order);

  /// Whether there was too little of the article when it was last looked at, and it is time to look again.
  bool isStale(const std::string& sku);

  /// Reads, in a transaction that writes nothing, how much there is, and which orders are booked unless that
  /// is known, and remembers it if there is less than `quantity`, until a reservation of the article expires
  /// at the latest. One call at a time on an article. Throws what the database throws.
  void look(const std::string& sku, std::int64_t quantity, Instant latest);

  /// There may be more of the article in stock: what was read before counts no more.
  void forget(const std::string& sku);

 private:
  using Hashes = std::vector<std::size_t>;

  struct Known {
    Stock stock{};
    std::shared_ptr<const Hashes> booked{};  // sorted, of the orders' ids
    bool hasTooMany = false;                 // then `booked` is null, and stays so: orders are never deleted
    Instant until{};                         // the end of what is remembered
  };

  Known beginLook(const std::string& sku);
  static void readBooked(StockTables& tables, const std::string& sku, Known& known);
  void remember(const std::string& sku, Known known);

  Database& database_;
  const std::shared_ptr<Clock> clock_;
  const std::chrono::milliseconds length_;

  std::mutex mutex_;
  std::size_t hashes_ = 0;  // of all articles
  std::unordered_map<std::string, Known> articles_;
  std::unordered_set<std::string> looking_;  // at these articles, which were not forgotten since
};

}  // namespace lockkeeper::inventory
