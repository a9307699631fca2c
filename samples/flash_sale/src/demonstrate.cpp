#include <iostream>
#include <vector>

#include "lockkeeper/store_uri.h"
#include "modes.h"
#include "sale/report.h"
#include "sale/sale.h"

namespace flash_sale {
namespace {

using lockkeeper::inventory::Way;

constexpr int unlockedRounds = 10;
constexpr int notProved = 1;
constexpr int mostOptimists = 500;

int judge(const std::vector<SaleResult>& sales) {
  int faults = 0;
  const auto blame = [&](const SaleResult& sale, const char* fault) {
    std::cerr << "flash_sale: " << sale.way << ": " << fault << '\n';
    ++faults;
  };
  if (sales.front().oversold == 0) blame(sales.front(), "did not oversell, so this run has proved nothing");
  for (auto sale = sales.begin() + 1; sale != sales.end(); ++sale) {
    if (sale->rush.unanswered > 0) blame(*sale, "some orders got no answer");
    if (sale->oversold > 0) blame(*sale, "oversold");
    if (!sale->balanced) blame(*sale, "what is left and what was sold is not what was there");
    if (!sale->ledgerAgrees) blame(*sale, "what is left is not the sum of the ledger");
  }
  if (faults > 0) return notProved;
  std::cout << "\nProved: without a lock " << sales.front().oversold
            << " pieces were sold that did not exist; with lockkeeper none, and each time what was left + "
               "what was "
               "sold = what was there, and what was left = the sum of the ledger.\n";
  return 0;
}

}  // namespace

int demonstrate(const Settings& settings, lockkeeper::LockManager& locks) {
  const bool embedded = settings.database.starts_with("sqlite:");
  std::cout << settings.stock << " pieces, " << settings.orders << " orders from " << settings.customers
            << " customers at once"
            << (settings.processes > 1 ? " at " + std::to_string(settings.processes) + " processes" : "")
            << "; locks in " << settings.store << ", stock in "
            << (embedded ? "SQLite" : lockkeeper::StoreUri::parse(settings.database).display()) << "\n\n";
  (void)locks.holder("anything");  // Better to find out now that the store is not there.
  SaleRoom room(settings, locks);
  std::vector<SaleResult> sales;
  // The race is a matter of luck, though seldom of bad luck.
  for (int round = 0; round == 0 || (round < unlockedRounds && sales.front().oversold == 0); ++round) {
    sales.assign(1, room.sellWithoutLock());
  }
  std::vector<Way> ways{Way::conditionalUpdate};
  // Locks in memory are those of one process.
  if (settings.processes == 1 || settings.store != "memory:") {
    ways = {Way::fencedRow, Way::conditionalUpdate, Way::lockedOptimistic};
  } else {
    std::cerr << "flash_sale: " << settings.processes
              << " processes share no lock in memory:, so no way that locks is tried\n";
  }
  // SQLite lets in one writer at a time, so that nobody there ever comes too late. Where thousands want one
  // row, nearly all do.
  if (!embedded && settings.customers <= mostOptimists) ways.push_back(Way::optimistic);
  for (const Way way : ways) sales.push_back(room.sell(way));
  sales.push_back(room.sellByReservation());
  printTable(std::cout, sales, settings.orders);
  const Rush& carts = sales.back().rush;
  std::cout << "\nreservations: " << carts.sold << " paid, " << carts.declined << " payments declined, "
            << carts.unpaid << " never paid; what these held was for sale again\n";
  return judge(sales);
}

}  // namespace flash_sale
