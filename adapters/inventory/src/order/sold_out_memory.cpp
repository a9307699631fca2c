#include "order/sold_out_memory.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "database/reservation_tables.h"
#include "lockkeeper/error.h"

namespace lockkeeper::inventory {
namespace {

constexpr std::size_t mostArticles = 10'000;
// 32 MB.
constexpr std::size_t mostHashes = 4'000'000;
constexpr std::int64_t idsOfPage = 10'000;
// Reading ids again and again takes no more than this part of the time.
constexpr int pausesPerReading = 20;

std::size_t hashOf(std::string_view orderId) { return std::hash<std::string_view>{}(orderId); }

}  // namespace

SoldOutMemory::SoldOutMemory(Database& database, std::shared_ptr<Clock> clock,
                             std::chrono::milliseconds length)
    : database_(database), clock_(std::move(clock)), length_(length) {}

bool SoldOutMemory::refuses(const Order& order) {
  Known known;
  {
    const std::lock_guard held(mutex_);
    const auto found = articles_.find(order.sku);
    if (found == articles_.end()) return false;
    known = found->second;
  }
  return known.booked && order.quantity > known.stock.level && clock_->now() < known.until &&
         !std::binary_search(known.booked->begin(), known.booked->end(), hashOf(order.orderId));
}

bool SoldOutMemory::isStale(const std::string& sku) {
  const Instant now = clock_->now();
  const std::lock_guard held(mutex_);
  const auto found = articles_.find(sku);
  return found != articles_.end() && now >= found->second.until;
}

void SoldOutMemory::look(const std::string& sku, std::int64_t quantity, Instant latest) {
  if (length_.count() == 0) return;
  Known known;
  std::uint64_t restocks = 0;
  {
    const std::lock_guard held(mutex_);
    restocks = restocks_;
    if (const auto found = articles_.find(sku); found != articles_.end()) known = found->second;
  }
  const Instant asked = clock_->now();
  Transaction transaction = database_.begin(Access::read, latest);
  StockTables tables(transaction, database_.dialect());
  // Before the level: on SQLite these are two moments, and what is put back between them must show.
  const auto expiry = ReservationTables(transaction, database_.dialect()).earliestExpiry(sku);
  const auto stock = tables.stock(sku);
  if (!stock || stock->level >= quantity) return forget(sku);
  if (expiry && expiry->count() <= 0) return forget(sku);
  // Whoever books an order of the article counts the version up, too.
  if (stock->version != known.stock.version) known.booked = nullptr;
  if (!known.booked && asked >= known.readAgain) {
    known.booked = readBooked(tables, sku);
    const Instant read = clock_->now();
    known.readAgain = saturatingAdd(read, pausesPerReading * (read - asked));
  }
  known.stock = *stock;
  known.until = saturatingAdd(asked, expiry ? std::min(length_, *expiry) : length_);
  const std::lock_guard held(mutex_);
  if (restocks == restocks_) remember(sku, std::move(known));
}

/// Null for an article with more orders than can be remembered, or read in time.
std::shared_ptr<const SoldOutMemory::Hashes> SoldOutMemory::readBooked(StockTables& tables,
                                                                       const std::string& sku) {
  Hashes hashes;
  std::string last;
  for (;;) {
    std::vector<std::string> ids;
    try {
      ids = tables.orderIdsOf(sku, last, idsOfPage);
    } catch (const StoreUnavailable&) {
      return nullptr;
    }
    for (const std::string& each : ids) hashes.push_back(hashOf(each));
    if (hashes.size() >= mostHashes) return nullptr;
    if (ids.size() < static_cast<std::size_t>(idsOfPage)) break;
    last = ids.back();
  }
  std::ranges::sort(hashes);
  return std::make_shared<const Hashes>(std::move(hashes));
}

void SoldOutMemory::remember(const std::string& sku, Known known) {
  if (articles_.size() >= mostArticles || hashes_ + (known.booked ? known.booked->size() : 0) > mostHashes) {
    articles_.clear();
    hashes_ = 0;
  }
  Known& place = articles_[sku];
  hashes_ -= place.booked ? place.booked->size() : 0;
  place = std::move(known);
  hashes_ += place.booked ? place.booked->size() : 0;
}

void SoldOutMemory::forget(const std::string& sku) {
  const std::lock_guard held(mutex_);
  ++restocks_;
  const auto found = articles_.find(sku);
  if (found == articles_.end()) return;
  hashes_ -= found->second.booked ? found->second.booked->size() : 0;
  articles_.erase(found);
}

}  // namespace lockkeeper::inventory
