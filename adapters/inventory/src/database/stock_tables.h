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

/// An order of an article, in the order of the index that the article's orders are read by. As it is made, it
/// is before all of them.
struct BookedPlace {
  mysql::SqlValue writtenAt{};  ///< NULL: a former version wrote it.
  std::string orderId{};
};

/// What is in stock, and how often that had changed by then.
struct Stock {
  std::int64_t level;
  std::int64_t version;
};

/// An article's own row.
struct Article {
  std::int64_t level;    ///< What is in no bucket.
  std::int64_t buckets;  ///< Into how many it is split; 1: it is not.
};

/// The buckets of an article that is split, together.
struct Buckets {
  std::int64_t count = 1;
  std::int64_t level = 0;
  std::int64_t version = 0;
};

/// The row that goods are taken from.
struct Source {
  /// Into how many buckets the article must be split. Empty: whoever takes holds the article's row, and has
  /// seen that.
  std::optional<std::int64_t> buckets = 1;
  /// Empty: the article's own row.
  std::optional<std::int64_t> bucket{};
};

/// The article's row, whatever it is split into.
inline constexpr Source heldArticle{.buckets = {}};

/// The statements on our tables, in one transaction. All throw what that throws.
class StockTables {
 public:
  StockTables(Transaction& transaction, Dialect dialect) : transaction_(transaction), dialect_(dialect) {}

  /// False when the order id is taken. Waits for a transaction that has written the same id and is still
  /// open. `levelBefore` is empty when it is not known yet: take() notes it.
  bool insertOrder(const Order& order, std::optional<std::int64_t> levelBefore = {});
  /// Which attempt has written the order, after waiting for transactions that may still write it. Without
  /// one, the transaction must not be committed.
  std::optional<std::int64_t> attemptOf(const std::string& orderId);
  /// Which of these orders, mostBoundBySqlite at most, are booked. Sees what was committed when the
  /// transaction first asked, or had got the rows that held() and holdBuckets() wait for.
  std::vector<BookedOrder> bookedAmong(std::span<const std::string_view> orderIds);
  /// The ids of the article's next booked orders after `place`, `most` at most; moves it to the last of them.
  std::vector<std::string> orderIdsAfter(BookedPlace& place, const std::string& sku, std::int64_t most);
  /// Writes the booked order's row, and then what stood in it, so that there is something to commit.
  void rewriteOrder(const std::string& orderId);
  /// How many were sold by the order; 0 when it is not booked, or is one for another article.
  std::int64_t sold(const std::string& orderId, const std::string& sku);

  /// Of the article's row and its buckets, at one moment.
  std::optional<Stock> stock(const std::string& sku);
  /// The rows of those that exist.
  std::map<std::string, Article> articles(const std::vector<std::string>& skus);
  /// The article's row, which nobody else changes until the transaction ends.
  std::optional<Article> held(const std::string& sku);
  /// The buckets of an article that is split, which nobody else changes until the transaction ends. It holds
  /// the article's row, and has read nothing yet without holding it: servers would show what was there then.
  Buckets holdBuckets(const std::string& sku);
  /// Shares out `left` evenly among the article's row and its buckets, all of which the transaction holds.
  /// What they have besides is in the row then, to be taken.
  void spread(const std::string& sku, const Buckets& held, std::int64_t left);
  /// Splits the article, all of whose rows the transaction holds, into so many buckets.
  void split(const std::string& sku, const Article& article, const Buckets& held, std::int64_t buckets);
  /// False when the row has seen this fence or a higher one, or does not exist.
  bool claim(const std::string& sku, std::int64_t fence);
  /// Takes what the order wants, which has been inserted. False when there is less in stock than that, or
  /// the article is split, or there is no such row: then the transaction must not be committed.
  bool take(const Order& order);
  /// Takes what these orders of one article, with different ids, want together, and inserts them, in one
  /// round trip. False unless there was enough for all of them and no id was taken: then the transaction
  /// must not be committed.
  bool book(std::span<const Order* const> orders, const Source& source);

  /// Adds to the article's row. Makes the article if it is new. Nobody else changes it until the transaction
  /// ends.
  void add(const std::string& sku, std::int64_t quantity);
  /// Writes the article's row without changing it, so that there is something to commit, and nobody else
  /// changes it until the transaction ends. False when there is no such row.
  bool touch(const std::string& sku);
  /// As touch(), for each of them, in one round trip.
  void hold(const std::vector<std::string>& skus);
  /// Changes no row when there is less in it than that, or no such row.
  mysql::SqlStatement taking(const std::string& sku, std::int64_t quantity, const Source& source) const;
  /// Changes no row when there is none.
  static mysql::SqlStatement putting(const std::string& sku, std::int64_t quantity);
  void resetFences();

 private:
  /// Rows to be inserted, with a '?' for each of the values.
  struct OrderRows {
    std::string columns{};
    std::string text{};
    mysql::SqlRow values{};
  };
  /// The orders are by one and the same.
  OrderRows rowsOf(std::span<const Order* const> orders, const std::string& level,
                   std::optional<std::int64_t> levelBefore) const;
  mysql::SqlStatement insertion(OrderRows rows) const;
  mysql::SqlStatement takingAndInserting(const mysql::SqlStatement& take, OrderRows rows) const;
  std::optional<std::int64_t> number(const std::string& select, const std::string& value);

  Transaction& transaction_;
  const Dialect dialect_;
};

}  // namespace lockkeeper::inventory
