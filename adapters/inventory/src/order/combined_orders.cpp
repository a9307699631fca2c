#include "order/combined_orders.h"

#include <algorithm>
#include <exception>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "database/stock_tables.h"

namespace lockkeeper::inventory {
namespace {

/// The quantity of the smallest order.
std::int64_t leastOf(std::span<PlacedOrder* const> orders) {
  const auto quantity = [](const PlacedOrder* each) { return each->order.quantity; };
  return (*std::ranges::min_element(orders, {}, quantity))->order.quantity;
}

}  // namespace

void CombinedOrders::book(std::span<PlacedOrder* const> orders, Instant latest) {
  std::vector<PlacedOrder*> open(orders.begin(), orders.end());
  if (soldOut_.isStale(open.front()->order.sku)) lookAt(open, latest);
  refuseSoldOut(open, latest);
  if (open.empty()) return;
  do {
    GroupBooking(database_, splits_, open, latest).run();
    std::erase_if(
        open, [](const PlacedOrder* each) { return each->failure || each->result != Deduction::soldOut; });
    if (open.empty()) return;
  } while (mayBeBooked(open, latest));
  lookAt(open, latest);
}

/// Answers those that are known to be sold out, and leaves the others. As long as not all booked orders are
/// known, they are looked up by their ids, which costs one statement.
void CombinedOrders::refuseSoldOut(std::vector<PlacedOrder*>& orders, Instant latest) {
  using Verdict = SoldOutMemory::Verdict;
  std::vector<PlacedOrder*> open;
  std::vector<PlacedOrder*> refused;
  std::vector<std::string_view> doubtful;
  for (PlacedOrder* each : orders) {
    const Verdict verdict = soldOut_.judge(each->order);
    (verdict == Verdict::open ? open : refused).push_back(each);
    if (verdict == Verdict::unlessBooked) doubtful.push_back(each->order.orderId);
  }
  std::unordered_set<std::string> booked;
  if (!doubtful.empty()) {
    database_.run(
        [&] {
          Transaction transaction = database_.begin(Access::read, latest);
          StockTables tables(transaction, database_.dialect());
          for (BookedOrder& each : tables.bookedAmong(doubtful)) booked.insert(std::move(each.orderId));
        },
        latest);
  }
  for (PlacedOrder* each : refused) {
    each->result = Deduction::soldOut;
    if (booked.contains(each->order.orderId)) open.push_back(each);
  }
  orders = std::move(open);
}

/// Whether one of them may get another answer now.
bool CombinedOrders::mayBeBooked(std::span<PlacedOrder* const> refused, Instant latest) {
  try {
    std::vector<std::string_view> ids;
    for (const PlacedOrder* each : refused) ids.push_back(each->order.orderId);
    return reservations_.mayBeBooked(refused.front()->order.sku, leastOf(refused), ids, latest);
  } catch (...) {
    for (PlacedOrder* each : refused) each->failure = std::current_exception();
    return false;
  }
}

/// What cannot be remembered is asked again.
void CombinedOrders::lookAt(std::span<PlacedOrder* const> refused, Instant latest) {
  const std::string& sku = refused.front()->order.sku;
  try {
    soldOut_.look(sku, leastOf(refused), latest);
  } catch (const std::exception&) {
    soldOut_.forget(sku);
  }
}

}  // namespace lockkeeper::inventory
