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

/// Sells stock that is kept in a database.
namespace lockkeeper::inventory {

/// The outcome of an order.
enum class Deduction {
  deducted,    ///< The order is booked, and its quantity is deducted from the stock.
  soldOut,     ///< There is not enough in stock, or there was not a moment ago: see
               ///< StockOptions::rememberSoldOut, also about orders that another service has booked.
  busy,        ///< The lock was busy for options.lockWait. Try again.
  duplicate,   ///< An order with this id was booked before, whatever its sku and quantity.
  conflict,    ///< The lock was lost, or the row changed at each attempt. Try again.
  unknownSku,  ///< There is no such article.
};

/// "deducted", "sold out", "busy", "duplicate", "conflict" or "unknown sku".
LOCKKEEPER_INVENTORY_EXPORT const char* toString(Deduction deduction) noexcept;

/// The outcome of a restock.
enum class Restock {
  restocked,
  duplicate,  ///< There was a restock with this id, whatever its sku and quantity. Nothing has changed.
};

/// The outcome of a return. Except for `returned`, nothing has changed.
enum class Return {
  returned,      ///< The goods are in stock again.
  duplicate,     ///< There was a return with this id, whatever its order, sku and quantity.
  unknownOrder,  ///< There is no order and no confirmed reservation of this article with that id.
  tooMany,       ///< More than the order took and has not returned yet.
};

/// "restocked" or "duplicate".
LOCKKEEPER_INVENTORY_EXPORT const char* toString(Restock restock) noexcept;
/// "returned", "duplicate", "unknown order" or "too many".
LOCKKEEPER_INVENTORY_EXPORT const char* toString(Return result) noexcept;

/// Deducts orders from stock in a database, restocks articles and takes goods back. Each change is also
/// recorded in the ledger, in the same transaction. After any result but `deducted`, `restocked` and
/// `returned`, nothing has changed. Thread-safe.
///
/// All methods block: for options.lockWait if they lock, and then for at most eight times
/// options.operationTimeout. With Way::conditionalUpdate, orders of one article that callers of this object
/// place at the same time are booked together. Besides the errors that each method names, they throw
/// - StoreUnavailable: the database or the lock store did not answer, and nothing has changed;
/// - ConfigError: the database cannot be used (credentials, missing tables, a file that is not a database).
class LOCKKEEPER_INVENTORY_EXPORT StockService {
 public:
  /// `database` is "sqlite:/absolute/path", "mysql://user:password@host[:3306]/database" or
  /// "postgres://user:password@host[:5432]/database"; the latter two may name a file of the password with
  /// ?passwordFile=path. Does not connect yet. `locks` may be moved or destroyed while the service is used;
  /// Way::conditionalUpdate and Way::optimistic do not use it. Throws ConfigError for any other URI, and for
  /// Way::fencedRow on a lock store without fences; std::invalid_argument for options out of range.
  StockService(std::string_view database, LockManager& locks, Way way, StockOptions options = {});
  StockService(StockService&&) noexcept;
  StockService& operator=(StockService&&) noexcept;
  ~StockService();

  /// Creates the missing tables, adds what tables of earlier versions lack, and opens the ledger of their
  /// articles with the present stock. Other processes may sell meanwhile. Safe to call again, and from
  /// several processes at once. Throws ConfigError that names a statement that the database refuses, and
  /// StoreUnavailable if one takes too long: then the server may still be executing it.
  void createSchema();

  /// Books the order `orderId` if there is enough in stock. Safe to call again with the same id after any
  /// error: the order is booked once. A service that did not book it may answer `soldOut` for a moment: see
  /// StockOptions::rememberSoldOut. Throws std::invalid_argument unless sku and orderId have 1 to 64 bytes
  /// and quantity is 1 to 1'000'000; OutcomeUnknown if the connection broke during COMMIT and the database
  /// could not be asked again, or if the time was over while another caller was booking this order together
  /// with its own; ConfigError for an article that is split, unless the way is Way::conditionalUpdate.
  [[nodiscard]] Deduction deduct(std::string_view sku, std::int64_t quantity, std::string_view orderId);

  /// Adds `quantity` (0 to 1'000'000) to the stock of the article, once for each `restockId`. A new article
  /// is created. Safe to call again with the same id after any error. Throws std::invalid_argument as
  /// deduct() does; OutcomeUnknown if the connection broke during COMMIT and the database could not be asked
  /// again.
  Restock restock(std::string_view sku, std::int64_t quantity, std::string_view restockId);

  /// The same with a new id: a second call after OutcomeUnknown may restock twice.
  void restock(std::string_view sku, std::int64_t quantity);

  /// Returns goods of the order or of the confirmed reservation `orderId` to stock, once for each `returnId`,
  /// and never more than it took. Safe to call again with the same id after any error. Throws as restock()
  /// does; `quantity` is 1 to 1'000'000.
  [[nodiscard]] Return takeBack(std::string_view orderId, std::string_view sku, std::int64_t quantity,
                                std::string_view returnId);

  /// Takes a cart (1 to 100 articles, none twice) from stock for `ttl` (1 ms to 30 days), by the database's
  /// clock: by default, the whole cart or nothing. If it is not confirmed by then, its goods are for sale
  /// again, exactly once. A call with an id that was used returns the present state of that reservation;
  /// if it is held for another cart, that is `differs`, with the lines that are held. A refused reservation
  /// may be tried again. Safe to call again after any error. Concurrent carts of one article are combined in
  /// one transaction. A call that needs goods of expired reservations first returns them to stock, 200 lines
  /// per transaction. Blocks for at most eight times options.operationTimeout; what was returned by then
  /// stays returned, and the next call continues from there. Throws as restock() does; ConfigError for an id
  /// that the ledger knows and whose reservation was deleted.
  [[nodiscard]] Reservation reserve(const std::vector<CartLine>& cart, std::chrono::milliseconds ttl,
                                    std::string_view reservationId, CartRule rule = CartRule::all);

  /// Replaces the lines of a held reservation by this cart, for `ttl` from now on, in one step: what it holds
  /// counts for the new cart, so no other caller gets it in between. Returns `held` with the new lines. If
  /// there is not enough, it returns `soldOut` or `unknownSku`, and the reservation keeps its lines and its
  /// expiry. If the reservation is not held, it returns its state and changes nothing. Safe to call again
  /// after any error. Blocks and throws as reserve() does.
  [[nodiscard]] Reservation replace(const std::vector<CartLine>& cart, std::chrono::milliseconds ttl,
                                    std::string_view reservationId, CartRule rule = CartRule::all);

  /// Each returns the state of the reservation afterwards, and changes nothing unless the reservation was
  /// held: a late confirmation returns `expired`, and the cancellation of sold goods returns `confirmed`.
  /// Safe to call again. Concurrent calls for carts of one article are combined, as for reserve(). Throw as
  /// restock() does.
  /// @{

  /// Sells the goods.
  [[nodiscard]] ReservationState confirm(std::string_view reservationId);
  /// Holds the goods for at least `ttl` from now on.
  [[nodiscard]] ReservationState extend(std::string_view reservationId, std::chrono::milliseconds ttl);
  /// Returns the goods to stock.
  ReservationState cancel(std::string_view reservationId);
  /// @}

  /// Splits the article's stock into `buckets` rows (1 to 64; 1 joins them), for articles so hot that several
  /// processes wait for each other at one row. Each group of orders or carts then takes from one bucket,
  /// chosen at random, and from all of them only if that one has too little. Safe to call again, and while
  /// any process sells. Returns false if there is no such article. Throws as restock() does.
  bool split(std::string_view sku, std::size_t buckets);

  /// Returns the goods of all expired reservations to stock, and says how many lines that were. Orders and
  /// carts do that themselves for the articles that they need; call it now and then, for example from a
  /// ScheduledTask, so that level() counts these goods. Blocks for one transaction per 200 lines of an
  /// article. An article whose row others keep locked does not hold up the rest. Throws as level() does.
  std::size_t sweepExpired();

  /// The article's last `most` (1 to 100'000) changes, the newest first. Tables of earlier versions need the
  /// indexes that createSchema() adds. Does not try again after a timeout. Throws std::invalid_argument as
  /// deduct() does.
  std::vector<LedgerEntry> ledger(std::string_view sku, std::size_t most = 100);

  /// The articles whose stock is not the sum of their ledger: none, unless the tables were written by
  /// something other than this class. Reads the whole ledger, in pages, as it was at one moment; others may
  /// sell meanwhile. Blocks as long as that takes. Once `stop` is requested, it ends after the present page
  /// and throws StoreUnavailable, as it does when a page takes longer than twice options.operationTimeout.
  std::vector<Discrepancy> checkLedger(const std::stop_token& stop = {});

  /// The present stock, without reserved goods; empty for an unknown article. Throws
  /// std::invalid_argument as deduct() does.
  std::optional<std::int64_t> level(std::string_view sku);

  /// Makes all rows accept any fence again. For operators: when the lock store has lost its counters (a Redis
  /// without persistence was restarted; `memory:` in a new process), the rows refuse all holders with
  /// `conflict`. Call it only when no former holder can still be running.
  void resetFences();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace lockkeeper::inventory
