#pragma once

#include <cstddef>
#include <cstdint>
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

  void createAll();

  /// False when the order id is taken. Waits for a transaction that has written the same id and is still
  /// open.
  bool insertOrder(const Order& order);
  /// Which attempt has written the order, after waiting for transactions that may still write it.
  std::optional<std::int64_t> attemptOf(const std::string& orderId);
  /// Which of these orders are booked. Sees what was committed when the transaction first asked, or had got
  /// the row that heldLevel() waits for.
  std::vector<BookedOrder> bookedAmong(std::span<const std::string_view> orderIds);
  /// The ids of the article's next booked orders after `after`, in their order, `most` at most.
  std::vector<std::string> orderIdsOf(const std::string& sku, const std::string& after, std::int64_t most);
  /// Counts up the version of a booked order's article, so that there is something to commit.
  void touchArticleOf(const std::string& orderId);

  std::optional<std::int64_t> level(const std::string& sku);
  /// The level, which nobody else changes until the transaction ends.
  std::optional<std::int64_t> heldLevel(const std::string& sku);
  std::optional<Stock> stock(const std::string& sku);
  /// False when the row has seen this fence or a higher one, or does not exist.
  bool claim(const std::string& sku, std::int64_t fence);
  /// False when there is less in stock than that, or no such row.
  bool take(const std::string& sku, std::int64_t quantity);
  /// Takes what these orders of one article, with different ids, want together, and inserts them, in one
  /// round trip. False unless there was enough for all of them and no id was taken: then the transaction
  /// must not be committed.
  bool book(std::span<const Order* const> orders);

  void add(const std::string& sku, std::int64_t quantity);
  void resetFences();

 private:
  mysql::SqlStatement insertion(std::span<const Order* const> orders) const;
  std::optional<std::int64_t> number(const std::string& select, const std::string& value);

  Transaction& transaction_;
  const Dialect dialect_;
};

}  // namespace lockkeeper::inventory
