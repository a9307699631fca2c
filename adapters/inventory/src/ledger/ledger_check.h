#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "database/backend.h"
#include "lockkeeper/inventory/ledger.h"

namespace lockkeeper::inventory {

/// Compares the stock of each article with the sum of its ledger.
class LedgerCheck {
 public:
  /// The transaction is a snapshot.
  LedgerCheck(Transaction& transaction, Dialect dialect, std::stop_token stop)
      : transaction_(transaction), dialect_(dialect), stop_(std::move(stop)) {}

  /// Reads all tables, page by page. Throws what the transaction throws, and StoreUnavailable when it is
  /// stopped.
  std::vector<Discrepancy> run();

 private:
  /// Of one article.
  struct Books {
    std::int64_t level = 0;
    std::int64_t ledger = 0;
  };

  /// Rows that are read in the order of one column.
  struct Rows {
    std::string table;
    std::string key;  ///< All rows of one key are in one page.
    std::string value;
    std::string condition{};  ///< On rows; with a '?' for each of `values`, and " AND " behind it.
    mysql::SqlRow values{};
  };

  void add(const Rows& rows, std::int64_t Books::*sum);
  std::vector<std::string> reasons();
  void checkStop() const;

  Transaction& transaction_;
  const Dialect dialect_;
  const std::stop_token stop_;
  std::map<std::string, Books> books_{};
};

}  // namespace lockkeeper::inventory
