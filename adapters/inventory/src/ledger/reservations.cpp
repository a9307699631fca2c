#include "ledger/reservations.h"

#include <algorithm>
#include <map>
#include <optional>

#include "database/ledger_tables.h"
#include "database/stock_tables.h"

namespace lockkeeper::inventory {
namespace {

using std::chrono::milliseconds;

// So much in one transaction takes some 10 ms, in which others wait for the row.
constexpr std::int64_t mostPutBackAtOnce = 200;
constexpr std::int64_t mostSkus = 1000;

/// One line that has expired is enough: whoever has put it back may have sold it already.
ReservationState stateOf(std::span<const ReservedLine> lines) {
  const auto is = [](ReservationState state) {
    return [state](const ReservedLine& each) { return each.state == state; };
  };
  for (const ReservationState each :
       {ReservationState::expired, ReservationState::confirmed, ReservationState::cancelled}) {
    if (std::ranges::any_of(lines, is(each))) return each;
  }
  return lines.front().left.count() > 0 ? ReservationState::held : ReservationState::expired;
}

std::string reasonFor(ReservationState state) {
  if (state == ReservationState::confirmed) return "confirm";
  return state == ReservationState::cancelled ? "cancel" : "expire";
}

std::vector<CartLine> cartOf(std::span<const ReservedLine> lines) {
  std::vector<CartLine> cart;
  for (const ReservedLine& each : lines) {
    if (each.quantity > 0) cart.push_back({each.sku, each.quantity});
  }
  return cart;
}

template <class Lines>
std::vector<std::string> skusOf(const Lines& lines) {
  std::vector<std::string> skus;
  for (const auto& each : lines) skus.push_back(each.sku);
  return skus;
}

}  // namespace

/// A transaction, and all statements in it.
struct Reservations::Work {
  explicit Work(Database& database, Instant latest = Instant::max())
      : transaction(database.begin(Access::write, latest)),
        stock(transaction, database.dialect()),
        reservations(transaction, database.dialect()),
        ledger(transaction, database.dialect()) {}

  Transaction transaction;
  StockTables stock;
  ReservationTables reservations;
  LedgerTables ledger;
};

Reservation Reservations::reserve(const std::vector<CartLine>& cart, milliseconds ttl, const std::string& id,
                                  CartRule rule) {
  Reservation result;
  bool known = false;
  database_.runUntilKnown([&] {
    Work work(database_);
    work.stock.hold(skusOf(cart));
    known = !work.reservations.lines(id).empty();
    if (known) return;
    result = decide(work, cart, rule);
    if (result.state == ReservationState::held) {
      take(work, cart, result.lines, ttl, id);
      work.transaction.commit();
    } else {
      commitAgain(work.transaction);  // What was put back stays so.
    }
  });
  if (!known) return result;
  return settle(id, [](Work&, std::span<const ReservedLine>) { return ReservationState::held; });
}

/// With the lines that it gets, or those that are to blame.
Reservation Reservations::decide(Work& work, const std::vector<CartLine>& cart, CartRule rule) {
  Reservation unknown{.state = ReservationState::unknownSku};
  Reservation lacking{.state = ReservationState::soldOut};
  Reservation got{.state = ReservationState::held};
  std::map<std::string, std::int64_t> levels = work.stock.levels(skusOf(cart));
  for (const CartLine& each : cart) {
    const auto found = levels.find(each.sku);
    if (found == levels.end()) {
      unknown.lines.push_back({each.sku, 0});
      continue;
    }
    std::int64_t& left = found->second;
    while (left < each.quantity && putBack(work, each.sku) > 0) left = work.stock.level(each.sku).value_or(0);
    if (left < each.quantity) lacking.lines.push_back({each.sku, left});
    if (left > 0) got.lines.push_back({each.sku, std::min(left, each.quantity)});
  }
  if (!unknown.lines.empty()) return unknown;
  const bool enough = rule == CartRule::all ? lacking.lines.empty() : !got.lines.empty();
  return enough ? got : lacking;
}

void Reservations::take(Work& work, const std::vector<CartLine>& cart, const std::vector<CartLine>& got,
                        milliseconds ttl, const std::string& id) {
  std::vector<mysql::SqlStatement> statements;
  auto next = got.begin();
  std::int64_t number = 0;
  for (const CartLine& each : cart) {
    ReservedLine line{.id = id, .line = number++, .sku = each.sku, .wanted = each.quantity};
    if (next != got.end() && next->sku == each.sku) {
      line.quantity = next++->quantity;
      statements.push_back(work.stock.taking(line.sku, line.quantity));
      statements.push_back(work.ledger.insertion({.reason = "reserve",
                                                  .id = id,
                                                  .line = line.line,
                                                  .sku = line.sku,
                                                  .amount = -line.quantity,
                                                  .who = who_}));
    }
    statements.push_back(work.reservations.insertion(line, ttl));
  }
  execute(work, statements);
}

Reservation Reservations::confirm(const std::string& id) {
  return settle(id, [&](Work& work, std::span<const ReservedLine> lines) {
    end(work, lines, ReservationState::confirmed);
    return ReservationState::confirmed;
  });
}

Reservation Reservations::cancel(const std::string& id) {
  return settle(id, [&](Work& work, std::span<const ReservedLine> lines) {
    end(work, lines, ReservationState::cancelled);
    return ReservationState::cancelled;
  });
}

Reservation Reservations::extend(const std::string& id, milliseconds ttl) {
  return settle(id, [&](Work& work, std::span<const ReservedLine> lines) {
    if (lines.front().left >= ttl) return ReservationState::held;
    std::vector<mysql::SqlStatement> statements;
    for (const ReservedLine& each : lines) statements.push_back(work.reservations.extension(each, ttl));
    execute(work, statements);
    return ReservationState::held;
  });
}

/// Calls `step` for a reservation that is held. One that has expired ends here.
Reservation Reservations::settle(const std::string& id, const Step& step) {
  Reservation result;
  database_.runUntilKnown([&] {
    const std::vector<ReservedLine> known = linesOf(id);
    if (known.empty()) {
      result = {.state = ReservationState::unknownId};
      return;
    }
    Work work(database_);
    work.stock.hold(skusOf(known));
    const std::vector<ReservedLine> lines = work.reservations.lines(id);
    result = {.state = stateOf(lines), .lines = cartOf(lines)};
    if (result.state == ReservationState::held) {
      result.state = step(work, lines);
    } else if (result.state == ReservationState::expired) {
      end(work, lines, ReservationState::expired);
    }
    work.transaction.commit();
  });
  return result;
}

std::vector<ReservedLine> Reservations::linesOf(const std::string& id) {
  Transaction transaction = database_.begin(Access::read);
  return ReservationTables(transaction, database_.dialect()).lines(id);
}

/// Ends those lines that are held. Unless they are sold, what they hold goes back.
void Reservations::end(Work& work, std::span<const ReservedLine> lines, ReservationState state) {
  std::vector<mysql::SqlStatement> statements;
  const bool back = state != ReservationState::confirmed;
  for (const ReservedLine& each : lines) {
    if (each.state != ReservationState::held) continue;
    statements.push_back(ReservationTables::ending(each, state));
    if (each.quantity == 0) continue;
    if (back) statements.push_back(StockTables::putting(each.sku, each.quantity));
    statements.push_back(work.ledger.insertion({.reason = reasonFor(state),
                                                .id = each.id,
                                                .line = each.line,
                                                .sku = each.sku,
                                                .amount = back ? each.quantity : 0,
                                                .who = who_}));
  }
  execute(work, statements);
}

std::size_t Reservations::putBackExpired(const std::string& sku, Instant latest) {
  std::size_t lines = 0;
  database_.run(
      [&] {
        Transaction transaction = database_.begin(Access::read, latest);
        lines = ReservationTables(transaction, database_.dialect()).expiredOf(sku, 1).size();
      },
      latest);
  if (lines == 0) return 0;
  database_.run(
      [&] {
        Work work(database_, latest);
        work.stock.touch(sku);
        lines = putBack(work, sku);
        commitAgain(work.transaction);
      },
      latest);
  return lines;
}

std::vector<std::string> Reservations::skusOfExpired() {
  std::vector<std::string> skus;
  database_.run([&] {
    Transaction transaction = database_.begin(Access::read);
    skus = ReservationTables(transaction, database_.dialect()).skusOfExpired(mostSkus);
  });
  return skus;
}

/// The transaction has the article's row.
std::size_t Reservations::putBack(Work& work, const std::string& sku) {
  const std::vector<ReservedLine> lines = work.reservations.expiredOf(sku, mostPutBackAtOnce);
  end(work, lines, ReservationState::expired);
  return lines.size();
}

/// Each of which changes one row; not when a reservation of other articles has got the id meanwhile.
void Reservations::execute(Work& work, const std::vector<mysql::SqlStatement>& statements) {
  if (statements.empty() || work.transaction.execute(statements) == statements.size()) return;
  throw Database::Undone(database_.display() + ": a reservation came in between");
}

}  // namespace lockkeeper::inventory
