#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "lockkeeper/inventory/export.h"
#include "lockkeeper/inventory/stock_options.h"
#include "lockkeeper/lock_manager.h"

/// Stock in a database, sold under locks.
namespace lockkeeper::inventory {

/// What became of an order.
enum class Deduction {
  deducted,    ///< The order is booked and the stock is lower by its quantity.
  soldOut,     ///< Less in stock than ordered, or there was: see StockOptions::rememberSoldOut.
  busy,        ///< The lock stayed taken for options.lockWait. Try again.
  duplicate,   ///< An order of this id was booked before, whatever its sku and quantity.
  conflict,    ///< The lock was lost meanwhile, or the row stayed contended. Try again.
  unknownSku,  ///< There is no such article.
};

/// "deducted", "sold out", "busy", "duplicate", "conflict" or "unknown sku".
LOCKKEEPER_INVENTORY_EXPORT const char* toString(Deduction deduction) noexcept;

/// Deducts orders from stock in a database. Except for `deducted`, nothing has changed. Thread-safe.
///
/// All methods block: for options.lockWait where they lock, and then for four transactions of twice
/// options.operationTimeout at most, the optimistic ways for four times twenty. Way::conditionalUpdate books
/// the orders together that callers of this object place for one article at the same time. Besides the errors
/// named at each, they throw
/// - StoreUnavailable: the database or the lock store did not answer; certainly nothing has changed;
/// - ConfigError: the database refuses to work (credentials, missing tables, a file that is no database).
class LOCKKEEPER_INVENTORY_EXPORT StockService {
 public:
  /// `database` is "sqlite:/absolute/path" or "mysql://user:password@host[:3306]/database", or with
  /// ?passwordFile=path for the password. Connects nowhere yet. `locks` must outlive the service;
  /// Way::conditionalUpdate and Way::optimistic do not use it. Throws ConfigError for a URI that is not one
  /// of these, and for Way::fencedRow on a lock store without fences; std::invalid_argument for options out
  /// of range.
  StockService(std::string_view database, LockManager& locks, Way way, StockOptions options = {});
  StockService(StockService&&) noexcept;
  StockService& operator=(StockService&&) noexcept;
  ~StockService();

  /// Makes the tables lockkeeper_stock and lockkeeper_orders where they do not exist.
  void createSchema();

  /// Books the order `orderId` if there is enough in stock. Safe to call again with the same id after any
  /// error. Throws std::invalid_argument unless sku and orderId have 1 to 64 bytes and quantity is 1 to
  /// 1'000'000; OutcomeUnknown when the connection broke during COMMIT and the database could not be asked
  /// again, or when time was up while another caller was booking this order with his own.
  [[nodiscard]] Deduction deduct(std::string_view sku, std::int64_t quantity, std::string_view orderId);

  /// Adds `quantity` (0 to 1'000'000) to the article, which is made if it is new. Not idempotent. Throws
  /// std::invalid_argument as deduct() does; OutcomeUnknown when the connection broke during COMMIT.
  void restock(std::string_view sku, std::int64_t quantity);

  /// What is in stock now; empty for an unknown article. Throws std::invalid_argument as deduct() does.
  std::optional<std::int64_t> level(std::string_view sku);

  /// Makes all rows accept any fence again. For operators: after the lock store has lost its counters (a
  /// Redis without persistence was restarted; `memory:` in a new process) the rows refuse all its holders
  /// with `conflict`. Call it only when no former holder can still be running.
  void resetFences();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace lockkeeper::inventory
