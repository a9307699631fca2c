#include "ledger/reservation_work.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

#include "database/dialect.h"
#include "lockkeeper/error.h"

namespace lockkeeper::inventory {
namespace {

constexpr std::size_t mostInsertedBySqlite = mostBoundBySqlite / 10;

std::string reasonFor(ReservationState state) {
  if (state == ReservationState::confirmed) return "confirm";
  return state == ReservationState::cancelled ? "cancel" : "expire";
}

/// Calls `each` with one part of the rows after the other, `most` at most in each.
template <class Row, class Each>
void inParts(std::span<const Row> rows, std::size_t most, const Each& each) {
  for (; !rows.empty(); rows = rows.subspan(std::min(most, rows.size()))) {
    each(rows.first(std::min(most, rows.size())));
  }
}

}  // namespace

/// One line that has expired is enough: whoever has put it back may have sold it already.
ReservationState stateOf(std::span<const ReservedLine> lines) {
  for (const ReservedLine& each : lines) {
    if (each.state) continue;
    throw ConfigError("the reservation " + quoted(each.id) + " has the state " + quoted(each.unknownState) +
                      " in lockkeeper_reservations: it must be held, confirmed, cancelled or expired");
  }
  const auto is = [](ReservationState state) {
    return [state](const ReservedLine& each) { return each.state == state; };
  };
  for (const ReservationState each :
       {ReservationState::expired, ReservationState::confirmed, ReservationState::cancelled}) {
    if (std::ranges::any_of(lines, is(each))) return each;
  }
  return lines.front().left.count() > 0 ? ReservationState::held : ReservationState::expired;
}

std::vector<CartLine> cartOf(std::span<const ReservedLine> lines) {
  std::vector<CartLine> cart;
  for (const ReservedLine& each : lines) {
    if (each.quantity > 0) cart.push_back({each.sku, each.quantity});
  }
  return cart;
}

bool areOf(std::span<const ReservedLine> lines, std::span<const CartLine> cart) {
  return std::ranges::equal(lines, cart, [](const ReservedLine& line, const CartLine& wanted) {
    return line.sku == wanted.sku && line.wanted == wanted.quantity;
  });
}

ReservationWork::ReservationWork(Database& database, const std::string& who, Instant latest)
    : transaction(database.begin(Access::write, latest)),
      stock(transaction, database.dialect()),
      reservations(transaction, database.dialect()),
      ledger(transaction, database.dialect()),
      database_(database),
      who_(who) {}

bool ReservationWork::take(std::span<const ReservedLine> lines, const Source& source,
                           std::int64_t firstEntry) {
  if (lines.empty()) return true;
  std::map<std::string, std::int64_t> sums;
  std::vector<Change> changes;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line->quantity == 0) continue;
    std::int64_t& sum = sums[line->sku];
    changes.push_back({.reason = "reserve",
                       .id = line->id,
                       .line = firstEntry + line->line,
                       .sku = line->sku,
                       .amount = -line->quantity,
                       .who = who_,
                       .later = sum});
    sum += line->quantity;
  }
  std::vector<mysql::SqlStatement> statements;
  for (const auto& [sku, sum] : sums) statements.push_back(stock.taking(sku, sum, source));
  inParts(lines, mostRows(), [&](auto part) { statements.push_back(reservations.insertion(part)); });
  insert(statements, changes, source);
  return transaction.execute(statements) == sums.size() + lines.size() + changes.size();
}

void ReservationWork::end(std::span<const ReservedLine> lines, ReservationState state) {
  std::vector<Release> releases;
  for (const ReservedLine& each : lines) {
    if (each.state != ReservationState::held) continue;
    releases.push_back({each, ReservationTables::ending(each, state), each.line});
  }
  release(releases, reasonFor(state), state != ReservationState::confirmed);
}

void ReservationWork::remove(std::span<const ReservedLine> lines, std::int64_t firstEntry) {
  std::vector<Release> releases;
  for (const ReservedLine& each : lines) {
    releases.push_back({each, ReservationTables::removal(each), firstEntry + each.line});
  }
  release(releases, "replace", true);
}

void ReservationWork::release(std::span<const Release> releases, const std::string& reason, bool goesBack) {
  std::vector<mysql::SqlStatement> statements;
  std::vector<Change> changes;
  std::map<std::string, std::int64_t> sums;
  for (auto each = releases.rbegin(); each != releases.rend(); ++each) {
    const ReservedLine& line = each->line;
    statements.push_back(each->statement);
    if (line.quantity == 0) continue;
    const std::int64_t amount = goesBack ? line.quantity : 0;
    std::int64_t& sum = sums[line.sku];
    changes.push_back({.reason = reason,
                       .id = line.id,
                       .line = each->entry,
                       .sku = line.sku,
                       .amount = amount,
                       .who = who_,
                       .later = -sum});
    sum += amount;
  }
  std::size_t rows = statements.size() + changes.size();
  for (const auto& [sku, sum] : sums) {
    if (sum == 0) continue;
    statements.push_back(StockTables::putting(sku, sum));
    ++rows;
  }
  insert(statements, changes, heldArticle);
  execute(statements, rows);
}

void ReservationWork::extend(std::span<const ReservedLine> lines) {
  std::vector<mysql::SqlStatement> statements;
  for (const ReservedLine& each : lines) statements.push_back(reservations.extension(each));
  execute(statements, statements.size());
}

ReservationWork::PutBack ReservationWork::putBack(const std::string& sku) {
  const std::vector<ReservedLine> lines = reservations.expiredOf(sku, mostPutBack);
  end(lines, ReservationState::expired);
  PutBack done{.lines = lines.size()};
  for (const ReservedLine& each : lines) done.pieces += each.quantity;
  linesPutBack_ += std::ssize(lines);
  return done;
}

/// Throws Database::Undone when they change another number of rows: a reservation of other articles has got
/// the id meanwhile.
void ReservationWork::execute(std::span<const mysql::SqlStatement> statements, std::size_t rows) {
  if (statements.empty() || transaction.execute(statements) == rows) return;
  throw Database::Undone(database_.display() + ": a reservation came in between");
}

void ReservationWork::insert(std::vector<mysql::SqlStatement>& statements, std::span<const Change> changes,
                             const Source& source) {
  inParts(changes, mostRows(), [&](auto part) { statements.push_back(ledger.insertion(part, source)); });
}

std::size_t ReservationWork::mostRows() const {
  return database_.dialect() == Dialect::sqlite ? mostInsertedBySqlite
                                                : std::numeric_limits<std::size_t>::max();
}

}  // namespace lockkeeper::inventory
