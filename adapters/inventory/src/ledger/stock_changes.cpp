#include "ledger/stock_changes.h"

#include "database/reservation_tables.h"
#include "database/stock_tables.h"

namespace lockkeeper::inventory {

Restock StockChanges::restock(const std::string& sku, std::int64_t quantity, const std::string& id,
                              std::int64_t attempt) {
  const Change change{
      .reason = "restock", .id = id, .sku = sku, .amount = quantity, .attempt = attempt, .who = who_};
  Restock result = Restock::restocked;
  database_.runUntilKnown([&] {
    std::optional<WrittenChange> known;
    {
      Transaction transaction = database_.begin();
      LedgerTables ledger(transaction, database_.dialect());
      StockTables(transaction, database_.dialect()).add(sku, quantity);
      known = ledger.find(change.reason, id);
      if (!known) {
        ledger.open(sku, quantity, who_);
        write(ledger, change);
        transaction.commit();
        result = Restock::restocked;
        return;
      }
    }
    keep(*known);
    result = known->attempt == attempt ? Restock::restocked : Restock::duplicate;
  });
  return result;
}

Return StockChanges::takeBack(const std::string& orderId, const std::string& sku, std::int64_t quantity,
                              const std::string& id, std::int64_t attempt) {
  const Change change{.reason = "return",
                      .id = id,
                      .sku = sku,
                      .amount = quantity,
                      .orderId = orderId,
                      .attempt = attempt,
                      .who = who_};
  Return result = Return::unknownOrder;
  database_.runUntilKnown([&] {
    std::optional<WrittenChange> known;
    {
      Transaction transaction = database_.begin();
      StockTables stock(transaction, database_.dialect());
      LedgerTables ledger(transaction, database_.dialect());
      const bool exists = stock.touch(sku);
      known = ledger.find(change.reason, id);
      if (!known) {
        const std::int64_t bought = exists ? sold(transaction, orderId, sku) : 0;
        result = bought == 0                                         ? Return::unknownOrder
                 : ledger.returned(orderId, sku) + quantity > bought ? Return::tooMany
                                                                     : Return::returned;
        if (result != Return::returned) return;
        stock.add(sku, quantity);
        write(ledger, change);
        transaction.commit();
        return;
      }
    }
    keep(*known);
    result = known->attempt == attempt ? Return::returned : Return::duplicate;
  });
  return result;
}

bool StockChanges::split(const std::string& sku, std::int64_t buckets) {
  bool exists = false;
  database_.runUntilKnown([&] {
    Transaction transaction = database_.begin();
    StockTables stock(transaction, database_.dialect());
    const auto article = stock.held(sku);
    exists = article.has_value();
    if (!exists) return;
    const Buckets held = article->buckets > 1 ? stock.holdBuckets(sku) : Buckets{};
    // Former versions open it with the row alone.
    LedgerTables(transaction, database_.dialect()).open(sku, 0, who_);
    stock.split(sku, *article, held, buckets);
    transaction.commit();
  });
  return exists;
}

/// By an order, or by a reservation that was confirmed.
std::int64_t StockChanges::sold(Transaction& transaction, const std::string& orderId,
                                const std::string& sku) {
  return StockTables(transaction, database_.dialect()).sold(orderId, sku) +
         ReservationTables(transaction, database_.dialect()).sold(orderId, sku);
}

/// Not when a change of another article has got the id meanwhile.
void StockChanges::write(LedgerTables& ledger, const Change& change) {
  if (!ledger.insert(change)) throw Database::Undone(database_.display() + ": a change came in between");
}

/// Servers show a commit to others before they have flushed it: a later one flushes both.
void StockChanges::keep(const WrittenChange& known) {
  Transaction transaction = database_.begin();
  StockTables(transaction, database_.dialect()).touch(known.sku);
  commitAgain(transaction);
}

}  // namespace lockkeeper::inventory
