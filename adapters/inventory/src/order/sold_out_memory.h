#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
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
    unlessBooked,  ///< It is sold out, unless it is booked: not all orders of the article are known yet.
  };
  /// Does not block.
  Verdict judge(const Order& order);

  /// Whether there was too little of the article when it was last looked at, and it is time to look again.
  bool isStale(const std::string& sku);

  /// Reads, in a transaction that writes nothing, how much there is, and remembers it if there is less than
  /// `quantity`, until a reservation of the article expires at the latest. If the stock has changed, it
  /// begins to read which orders are booked. One call at a time on an article. Throws what the database
  /// throws.
  void look(const std::string& sku, std::int64_t quantity, Instant latest);

  /// The database was asked about an order that is refused. Reads the next page of the booked orders, unless
  /// all are known, once so many were asked about that reading costs no more than asking has. One caller
  /// reads at a time; the others go on. Does not throw: what cannot be read is asked about.
  void readOn(const std::string& sku, Instant latest);

  /// There may be more of the article in stock: what was read before counts no more.
  void forget(const std::string& sku);

 private:
  using Hashes = std::vector<std::size_t>;

  struct Known {
    Stock stock{};
    std::shared_ptr<const Hashes> booked = std::make_shared<const Hashes>();  // sorted, of the orders' ids
    BookedPlace last{};                                                       // of them
    bool hasAll = false;                                                      // there are no more
    std::size_t asked = 0;  // about so many orders since a page was read
    Instant until{};        // the end of what is remembered
  };

  bool isBegun(const std::string& sku, std::int64_t version);
  static void readPage(StockTables& tables, const std::string& sku, std::size_t most, Known& known);
  void remember(const std::string& sku, Known known);
  std::optional<Known> beginPage(const std::string& sku);
  void addPage(const std::string& sku, Known known);
  void put(const std::string& sku, Known known);
  void drop(const std::string& sku);

  Database& database_;
  const std::shared_ptr<Clock> clock_;
  const std::chrono::milliseconds length_;

  std::mutex mutex_;
  std::size_t hashes_ = 0;  // of all articles
  std::unordered_map<std::string, Known> articles_;
  std::unordered_set<std::string> looking_;  // at these articles, which were not forgotten since
  std::unordered_set<std::string> reading_;  // the next page of these articles
};

}  // namespace lockkeeper::inventory
