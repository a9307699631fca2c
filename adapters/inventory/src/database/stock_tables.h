#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "database/backend.h"

namespace lockkeeper::inventory {

struct Order {
  std::string sku{};
  std::int64_t quantity = 0;
  std::string orderId{};
  std::int64_t attempt = 0;  ///< Random: tells the row that this call wrote from another call's.
  std::string who{};         ///< For the ledger.
};

/// An order that is booked.
struct BookedOrder {
  std::string orderId;
  std::int64_t attempt;
};

/// What is in stock, and how often the row had been written then.
struct Stock {
  std::int64_t level;
  std::int64_t version;
};

/// The statements on our tables, in one transaction. All throw what that throws.
class StockTables {
 public:
  StockTables(Transaction& transaction, Dialect dialect) : transaction_(transaction), dialect_(dialect) {}

  /// False when the order id is taken. Waits for a transaction that has written the same id and is still
  /// open. `levelBefore` is empty when it is not known yet: take() notes it.
  bool insertOrder(const Order& order, std::optional<std::int64_t> levelBefore = {});
  /// Which attempt has written the order, after waiting for transactions that may still write it.
  std::optional<std::int64_t> attemptOf(const std::string& orderId);
  /// Which of these orders are booked. Sees what was committed when the transaction first asked, or had got
  /// the row that heldLevel() waits for.
  std::vector<BookedOrder> bookedAmong(std::span<const std::string_view> orderIds);
  /// The ids of the article's next booked orders after `after`, in their order, `most` at most.
  std::vector<std::string> orderIdsOf(const std::string& sku, const std::string& after, std::int64_t most);
  /// Counts up the version of a booked order's article, so that there is something to commit.
  void touchArticleOf(const std::string& orderId);
  /// How many were sold by the order; 0 when it is not booked, or is one for another article.
  std::int64_t sold(const std::string& orderId, const std::string& sku);

  std::optional<std::int64_t> level(const std::string& sku);
  /// The levels of those that exist.
  std::map<std::string, std::int64_t> levels(const std::vector<std::string>& skus);
  /// The level, which nobody else changes until the transaction ends.
  std::optional<std::int64_t> heldLevel(const std::string& sku);
  std::optional<Stock> stock(const std::string& sku);
  /// False when the row has seen this fence or a higher one, or does not exist.
  bool claim(const std::string& sku, std::int64_t fence);
  /// Takes what the order wants, which has been inserted. False when there is less in stock than that, or no
  /// such row: then the transaction must not be committed.
  bool take(const Order& order);
  /// Takes what these orders of one article, with different ids, want together, and inserts them, in one
  /// round trip. False unless there was enough for all of them and no id was taken: then the transaction
  /// must not be committed.
  bool book(std::span<const Order* const> orders);

  /// Makes the article if it is new. Nobody else changes it until the transaction ends.
  void add(const std::string& sku, std::int64_t quantity);
  /// Counts up the article's version, and nobody else changes it until the transaction ends. False when there
  /// is no such row.
  bool touch(const std::string& sku);
  /// As touch(), for each of them, in one round trip.
  void hold(const std::vector<std::string>& skus);
  /// Changes no row when there is less in stock than that, or no such row.
  mysql::SqlStatement taking(const std::string& sku, std::int64_t quantity) const;
  /// Changes no row when there is none.
  static mysql::SqlStatement putting(const std::string& sku, std::int64_t quantity);
  void resetFences();

 private:
  /// The orders are by one and the same.
  mysql::SqlStatement insertion(std::span<const Order* const> orders, const std::string& level,
                                std::optional<std::int64_t> levelBefore) const;
  std::optional<std::int64_t> number(const std::string& select, const std::string& value);

  Transaction& transaction_;
  const Dialect dialect_;
};

}  // namespace lockkeeper::inventory
