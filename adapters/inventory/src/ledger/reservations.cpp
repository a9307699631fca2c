#include "ledger/reservations.h"

#include "database/stock_tables.h"

namespace lockkeeper::inventory {
namespace {

constexpr std::int64_t mostSkus = 1000;
constexpr std::size_t mostScarce = 10'000;

template <class Lines>
std::vector<std::string> skusOf(const Lines& lines) {
  std::vector<std::string> skus;
  for (const auto& each : lines) skus.push_back(each.sku);
  return skus;
}

}  // namespace

Reservations::Reservations(Database& database, KnownSplits& splits, std::string who,
                           const std::shared_ptr<Clock>& clock)
    : database_(database),
      splits_(splits),
      who_(std::move(who)),
      carts_(clock,
             [this](std::span<PlacedReservation* const> carts, Instant latest) { write(carts, latest); }),
      settlements_(clock, [this](std::span<PlacedSettlement* const> calls, Instant latest) {
        GroupSettling(database_, who_, calls, latest).run();
      }) {}

Reservation Reservations::reserve(PlacedReservation cart, Instant latest) {
  const std::string id = cart.id;
  const bool alone = cart.cart.size() > 1 || cart.replaces();
  cart = alone ? carts_.placeAlone(std::move(cart), latest) : carts_.place(std::move(cart), latest);
  return cart.result ? *std::move(cart.result) : settle({.id = id}, latest);
}

/// Where the last carts found too little, the next ones mostly do, too.
void Reservations::write(std::span<PlacedReservation* const> carts, Instant latest) {
  const std::string& sku = carts.front()->sku();
  bool isScarce = false;
  {
    const std::lock_guard held(mutex_);
    isScarce = scarce_.contains(sku);
  }
  GroupReserving group(database_, splits_, who_, carts, latest, isScarce);
  group.run();
  if (group.foundTooLittle() == isScarce) return;
  const std::lock_guard held(mutex_);
  if (scarce_.size() >= mostScarce) scarce_.clear();
  if (isScarce) {
    scarce_.erase(sku);
  } else {
    scarce_.insert(sku);
  }
}

Reservation Reservations::settle(PlacedSettlement call, Instant latest, std::vector<std::string>* skus) {
  do {
    database_.run(
        [&] {
          Transaction transaction = database_.begin(Access::read, latest);
          call.skus = skusOf(ReservationTables(transaction, database_.dialect()).lines({&call.id, 1}));
        },
        latest);
    if (skus != nullptr) *skus = call.skus;
    if (call.skus.empty()) return {.state = ReservationState::unknownId};
    const bool alone = call.skus.size() > 1;
    call = alone ? settlements_.placeAlone(std::move(call), latest)
                 : settlements_.place(std::move(call), latest);
  } while (call.moved);
  return std::move(call.result);
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
        ReservationWork work(database_, who_, latest);
        work.stock.touch(sku);
        lines = work.putBack(sku).lines;
        commitAgain(work.transaction);
      },
      latest);
  return lines;
}

bool Reservations::mayBeBooked(const std::string& sku, std::int64_t least,
                               std::span<const std::string_view> orderIds, Instant latest) {
  if (putBackExpired(sku, latest) > 0) return true;
  bool may = false;
  database_.run(
      [&] {  // After the look for what has expired, so that what others have put back before it shows.
        Transaction transaction = database_.begin(Access::read, latest);
        StockTables stock(transaction, database_.dialect());
        const auto found = stock.stock(sku);
        may = (found && found->level >= least) || !stock.bookedAmong(orderIds).empty();
      },
      latest);
  return may;
}

std::vector<std::string> Reservations::skusOfExpired() {
  std::vector<std::string> skus;
  database_.run([&] {
    Transaction transaction = database_.begin(Access::read);
    skus = ReservationTables(transaction, database_.dialect()).skusOfExpired(mostSkus);
  });
  return skus;
}

}  // namespace lockkeeper::inventory
