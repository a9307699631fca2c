#include "order/sold_out_memory.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "database/reservation_tables.h"

namespace lockkeeper::inventory {
namespace {

constexpr std::size_t mostArticles = 10'000;
// 32 MB.
constexpr std::size_t mostHashes = 4'000'000;
// Of one article. Read in some 10 ms, each time that the article has changed; more are looked up by their
// ids.
constexpr std::size_t mostBooked = 10'000;

std::size_t hashOf(std::string_view orderId) { return std::hash<std::string_view>{}(orderId); }

}  // namespace

SoldOutMemory::SoldOutMemory(Database& database, std::shared_ptr<Clock> clock,
                             std::chrono::milliseconds length)
    : database_(database), clock_(std::move(clock)), length_(length) {}

SoldOutMemory::Verdict SoldOutMemory::judge(const Order& order) {
  Known known;
  {
    const std::lock_guard held(mutex_);
    const auto found = articles_.find(order.sku);
    if (found == articles_.end()) return Verdict::open;
    known = found->second;
  }
  if (order.quantity <= known.stock.level || clock_->now() >= known.until) return Verdict::open;
  if (known.hasTooMany) return Verdict::unlessBooked;
  const bool mayBeBooked =
      std::binary_search(known.booked->begin(), known.booked->end(), hashOf(order.orderId));
  return mayBeBooked ? Verdict::open : Verdict::soldOut;
}

bool SoldOutMemory::isStale(const std::string& sku) {
  const Instant now = clock_->now();
  const std::lock_guard held(mutex_);
  const auto found = articles_.find(sku);
  return found != articles_.end() && now >= found->second.until;
}

void SoldOutMemory::look(const std::string& sku, std::int64_t quantity, Instant latest) {
  if (length_.count() == 0) return;
  Known known = beginLook(sku);
  const Instant asked = clock_->now();
  Transaction transaction = database_.begin(Access::read, latest);
  StockTables tables(transaction, database_.dialect());
  // Before the level: these are two moments, and what is put back between them must show.
  const auto expiry = ReservationTables(transaction, database_.dialect()).earliestExpiry(sku);
  const auto stock = tables.stock(sku);
  if (!stock || stock->level >= quantity) return forget(sku);
  if (expiry && expiry->count() <= 0) return forget(sku);
  // Whoever books an order of the article counts the version up, too.
  const bool isKnown = known.booked && stock->version == known.stock.version;
  if (!isKnown && !known.hasTooMany) readBooked(tables, sku, known);
  known.stock = *stock;
  known.until = saturatingAdd(asked, expiry ? std::min(length_, *expiry) : length_);
  remember(sku, std::move(known));
}

/// What is remembered from before.
SoldOutMemory::Known SoldOutMemory::beginLook(const std::string& sku) {
  const std::lock_guard held(mutex_);
  looking_.insert(sku);
  const auto found = articles_.find(sku);
  return found == articles_.end() ? Known{} : found->second;
}

void SoldOutMemory::readBooked(StockTables& tables, const std::string& sku, Known& known) {
  known.booked = nullptr;
  const std::vector<std::string> ids = tables.orderIdsOf(sku, mostBooked + 1);
  known.hasTooMany = ids.size() > mostBooked;
  if (known.hasTooMany) return;
  Hashes hashes;
  hashes.reserve(ids.size());
  for (const std::string& each : ids) hashes.push_back(hashOf(each));
  std::ranges::sort(hashes);
  known.booked = std::make_shared<const Hashes>(std::move(hashes));
}

/// Not when the article was forgotten meanwhile.
void SoldOutMemory::remember(const std::string& sku, Known known) {
  const std::lock_guard held(mutex_);
  if (looking_.erase(sku) == 0) return;
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
  looking_.erase(sku);
  const auto found = articles_.find(sku);
  if (found == articles_.end()) return;
  hashes_ -= found->second.booked ? found->second.booked->size() : 0;
  articles_.erase(found);
}

}  // namespace lockkeeper::inventory
