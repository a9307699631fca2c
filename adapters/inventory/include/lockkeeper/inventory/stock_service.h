#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

#include "lockkeeper/inventory/export.h"
#include "lockkeeper/inventory/ledger.h"
#include "lockkeeper/inventory/reservation.h"
#include "lockkeeper/inventory/stock_options.h"
#include "lockkeeper/lock_manager.h"

/// Stock in a database, sold under locks.
namespace lockkeeper::inventory {

/// What became of an order.
enum class Deduction {
  deducted,    ///< The order is booked and the stock is lower by its quantity.
  soldOut,     ///< Less in stock than ordered, or there was: see StockOptions::rememberSoldOut, also for an
               ///< order that another service may have booked meanwhile.
  busy,        ///< The lock stayed taken for options.lockWait. Try again.
  duplicate,   ///< An order of this id was booked before, whatever its sku and quantity.
  conflict,    ///< The lock was lost meanwhile, or the row stayed contended. Try again.
  unknownSku,  ///< There is no such article.
};

/// "deducted", "sold out", "busy", "duplicate", "conflict" or "unknown sku".
LOCKKEEPER_INVENTORY_EXPORT const char* toString(Deduction deduction) noexcept;

/// What became of a restock.
enum class Restock {
  restocked,
  duplicate,  ///< A restock of this id was done before, whatever its sku and quantity. Nothing has changed.
};

/// What became of a return. Except for `returned`, nothing has changed.
enum class Return {
  returned,      ///< The goods are in stock again.
  duplicate,     ///< A return of this id was done before, whatever it was of.
  unknownOrder,  ///< There is no such order, and no such confirmed reservation, of this article.
  tooMany,       ///< More than the order took, less what came back before.
};

/// "restocked" or "duplicate".
LOCKKEEPER_INVENTORY_EXPORT const char* toString(Restock restock) noexcept;
/// "returned", "duplicate", "unknown order" or "too many".
LOCKKEEPER_INVENTORY_EXPORT const char* toString(Return result) noexcept;

/// Deducts orders from stock in a database, restocks it and takes goods back. Each change is a row of the
/// ledger, in the same transaction. Except for `deducted`, `restocked` and `returned`, nothing has changed.
/// Thread-safe.
///
/// All methods block: for options.lockWait where they lock, and then for eight times options.operationTimeout
/// at most. Way::conditionalUpdate books the orders together that callers of this object place for one
/// article at the same time. Besides the errors named at each, they throw
/// - StoreUnavailable: the database or the lock store did not answer; certainly nothing has changed;
/// - ConfigError: the database refuses to work (credentials, missing tables, a file that is no database).
class LOCKKEEPER_INVENTORY_EXPORT StockService {
 public:
  /// `database` is "sqlite:/absolute/path", "mysql://user:password@host[:3306]/database" or
  /// "postgres://user:password@host[:5432]/database", the latter two also with ?passwordFile=path for the
  /// password. Connects nowhere yet. Goes on when `locks` is moved or destroyed;
  /// Way::conditionalUpdate and Way::optimistic do not use it. Throws ConfigError for a URI that is not one
  /// of these, and for Way::fencedRow on a lock store without fences; std::invalid_argument for options out
  /// of range.
  StockService(std::string_view database, LockManager& locks, Way way, StockOptions options = {});
  StockService(StockService&&) noexcept;
  StockService& operator=(StockService&&) noexcept;
  ~StockService();

  /// Makes the tables where they do not exist, adds what tables of former versions lack, and opens the ledger
  /// of their articles with what there is, while others go on selling. Safe to call again, and from several
  /// processes at once. Throws ConfigError that names the statement which the database refuses,
  /// StoreUnavailable when one takes longer than the service waits: then the server may still be at it.
  void createSchema();

  /// Books the order `orderId` if there is enough in stock. Safe to call again with the same id after any
  /// error: it is booked once. Another service than the one that booked it may answer `soldOut` for a time:
  /// see StockOptions::rememberSoldOut. Throws std::invalid_argument unless sku and orderId have 1 to 64
  /// bytes and quantity is 1 to 1'000'000; OutcomeUnknown when the connection broke during COMMIT and the
  /// database could not be asked again, or when time was up while another caller was booking this order with
  /// his own; ConfigError in other ways than Way::conditionalUpdate for an article that is split.
  [[nodiscard]] Deduction deduct(std::string_view sku, std::int64_t quantity, std::string_view orderId);

  /// Adds `quantity` (0 to 1'000'000) to the article, which is made if it is new: once for each `restockId`.
  /// Safe to call again with the same id after any error. Throws std::invalid_argument as deduct() does;
  /// OutcomeUnknown when the connection broke during COMMIT and the database could not be asked again.
  Restock restock(std::string_view sku, std::int64_t quantity, std::string_view restockId);

  /// The same with a new id: who calls again after OutcomeUnknown may restock twice.
  void restock(std::string_view sku, std::int64_t quantity);

  /// Puts goods back in stock that the order or the confirmed reservation `orderId` took: once for each
  /// `returnId`, and never more than it took. Safe to call again with the same id after any error. Throws as
  /// restock() does; `quantity` is 1 to 1'000'000.
  [[nodiscard]] Return takeBack(std::string_view orderId, std::string_view sku, std::int64_t quantity,
                                std::string_view returnId);

  /// Takes a cart (1 to 100 articles, none twice) from stock for `ttl` (1 ms to 30 days), by the database's
  /// clock. By default all of it or nothing. What is not confirmed by then goes back by itself, exactly once.
  /// Again with the same id, it answers with what the reservation is now; if it is held for another cart,
  /// with `differs` and the lines that are held. One that was refused may come again. Safe to call again
  /// after any error. Concurrent carts for one article are combined in one transaction. Whoever needs what
  /// has expired puts it back first, in a transaction for each 200 lines of carts. Blocks for eight times
  /// options.operationTimeout at most; what was put back by then stays so, and the next call goes on from
  /// there. Throws as restock() does; ConfigError for an id of which the ledger tells, and whose reservation
  /// was deleted.
  [[nodiscard]] Reservation reserve(const std::vector<CartLine>& cart, std::chrono::milliseconds ttl,
                                    std::string_view reservationId, CartRule rule = CartRule::all);

  /// Replaces the lines of a reservation that is held by this cart, for `ttl` from now on, at once: what it
  /// holds counts for the cart already, so that nobody gets it in between. `held` with the new lines; soldOut
  /// or unknownSku when the cart cannot be had: then it holds the old lines, until they expire, as before.
  /// Otherwise it answers with what the reservation is, and changes nothing. Safe to call again after any
  /// error. Blocks and throws as reserve() does.
  [[nodiscard]] Reservation replace(const std::vector<CartLine>& cart, std::chrono::milliseconds ttl,
                                    std::string_view reservationId, CartRule rule = CartRule::all);

  /// Each answers with what the reservation is afterwards, and changes nothing unless it was held: a
  /// confirmation that comes too late is `expired`, and a cancellation of what was sold `confirmed`. Safe to
  /// call again. Calls on carts of one article that come together are one transaction, as for reserve().
  /// Throw as restock() does.
  /// @{

  /// Sells what is held.
  [[nodiscard]] ReservationState confirm(std::string_view reservationId);
  /// Holds it for `ttl` from now on at least.
  [[nodiscard]] ReservationState extend(std::string_view reservationId, std::chrono::milliseconds ttl);
  /// Puts back what is held.
  ReservationState cancel(std::string_view reservationId);
  /// @}

  /// Splits the article's stock into so many buckets (1 to 64; 1 joins them), for articles so hot that
  /// several processes wait for each other at its row. Each group of orders or carts then takes from one
  /// bucket, by chance, and from all only where that has too little. Safe to call again, and while others
  /// sell, in any process. False when there is no such article. Throws as restock() does.
  bool split(std::string_view sku, std::size_t buckets);

  /// Puts back all that has expired: how many articles of reservations. Nobody needs it to buy what has
  /// expired; call it now and then, as from a ScheduledTask, so that level() shows it. Blocks for a
  /// transaction for each 200 lines of an article, and throws as level() does; an article that others keep
  /// locked does not keep the rest from going back.
  std::size_t sweepExpired();

  /// The article's last `most` (1 to 100'000) changes, the newest first. Tables of former versions need the
  /// indexes that createSchema() adds. An answer that does not come in time is not asked for again. Throws
  /// std::invalid_argument as deduct() does.
  std::vector<LedgerEntry> ledger(std::string_view sku, std::size_t most = 100);

  /// The articles whose stock is not the sum of their ledger: none, unless somebody writes the tables past
  /// this class. Reads the whole ledger, in pages, as it was at one moment; others sell meanwhile. Blocks as
  /// long as that takes, but for one page at most once `stop` is requested, when it throws StoreUnavailable.
  /// A page that has no answer in twice options.operationTimeout ends it, and is not tried again.
  std::vector<Discrepancy> checkLedger(const std::stop_token& stop = {});

  /// What is in stock now, and neither sold nor reserved; empty for an unknown article. Throws
  /// std::invalid_argument as deduct() does.
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
