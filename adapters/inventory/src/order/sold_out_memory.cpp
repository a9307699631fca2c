#include "order/sold_out_memory.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "database/reservation_tables.h"

namespace lockkeeper::inventory {
namespace {

constexpr std::size_t mostArticles = 10'000;
// 32 MB.
constexpr std::size_t mostHashes = 4'000'000;
// Of one article. If there are more, orders are looked up by their ids.
constexpr std::size_t mostBooked = 2'000'000;
// Each page is as long as those before it together, so that they are merged a few times only. The longest is
// read in some 20 ms.
constexpr std::size_t shortestPage = 1'000;
constexpr std::size_t longestPage = 5'000;
// To ask about an order costs about as much as to read so many ids.
constexpr std::size_t idsForOneAsked = 10;

std::size_t pageAfter(std::size_t known) { return std::clamp(known, shortestPage, longestPage); }

std::size_t hashOf(std::string_view orderId) { return std::hash<std::string_view>{}(orderId); }

}  // namespace

SoldOutMemory::SoldOutMemory(Database& database, std::shared_ptr<Clock> clock,
                             std::chrono::milliseconds length)
    : database_(database), clock_(std::move(clock)), length_(length) {}

SoldOutMemory::Verdict SoldOutMemory::judge(const Order& order) {
  const Instant now = clock_->now();
  std::shared_ptr<const Hashes> booked;
  {
    const std::lock_guard held(mutex_);
    const auto found = articles_.find(order.sku);
    if (found == articles_.end()) return Verdict::open;
    const Known& known = found->second;
    if (order.quantity <= known.stock.level || now >= known.until) return Verdict::open;
    if (!known.hasAll) return Verdict::unlessBooked;
    booked = known.booked;
  }
  const bool mayBeBooked = std::binary_search(booked->begin(), booked->end(), hashOf(order.orderId));
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
  {
    const std::lock_guard held(mutex_);
    looking_.insert(sku);
  }
  const Instant asked = clock_->now();
  Transaction transaction = database_.begin(Access::read, latest);
  StockTables tables(transaction, database_.dialect());
  // Before the level: these are two moments, and what is put back between them must show.
  const auto expiry = ReservationTables(transaction, database_.dialect()).earliestExpiry(sku);
  const auto stock = tables.stock(sku);
  if (!stock || stock->level >= quantity) return forget(sku);
  if (expiry && expiry->count() <= 0) return forget(sku);
  Known known{.stock = *stock};
  known.until = saturatingAdd(asked, expiry ? std::min(length_, *expiry) : length_);
  if (!isBegun(sku, stock->version)) readPage(tables, sku, shortestPage, known);
  remember(sku, std::move(known));
}

/// Whether booked orders have been read that are still so: whoever books one counts the version up, too.
bool SoldOutMemory::isBegun(const std::string& sku, std::int64_t version) {
  const std::lock_guard held(mutex_);
  const auto found = articles_.find(sku);
  return found != articles_.end() && found->second.stock.version == version;
}

void SoldOutMemory::readPage(StockTables& tables, const std::string& sku, std::size_t most, Known& known) {
  const std::vector<std::string> ids = tables.orderIdsAfter(known.last, sku, static_cast<std::int64_t>(most));
  known.hasAll = ids.size() < most;
  Hashes page;
  page.reserve(ids.size());
  for (const std::string& each : ids) page.push_back(hashOf(each));
  std::ranges::sort(page);
  Hashes all;
  all.reserve(known.booked->size() + page.size());
  std::ranges::merge(*known.booked, page, std::back_inserter(all));
  known.booked = std::make_shared<const Hashes>(std::move(all));
}

/// Not when the article was forgotten meanwhile. What is known of its orders stays if the version is the
/// same.
void SoldOutMemory::remember(const std::string& sku, Known known) {
  const std::lock_guard held(mutex_);
  if (looking_.erase(sku) == 0) return;
  const auto found = articles_.find(sku);
  if (found != articles_.end() && found->second.stock.version == known.stock.version) {
    found->second.until = known.until;
  } else {
    put(sku, std::move(known));
  }
}

void SoldOutMemory::readOn(const std::string& sku, Instant latest) {
  std::optional<Known> known = beginPage(sku);
  if (!known) return;
  try {
    Transaction transaction = database_.begin(Access::read, latest);
    StockTables tables(transaction, database_.dialect());
    readPage(tables, sku, pageAfter(known->booked->size()), *known);
    // After the page: nothing has been booked since the first one was read.
    const auto stock = tables.stock(sku);
    if (stock && stock->version == known->stock.version) return addPage(sku, *std::move(known));
  } catch (const std::exception&) {
  }
  const std::lock_guard held(mutex_);
  reading_.erase(sku);
}

/// What is known, if it is time for the next page.
std::optional<SoldOutMemory::Known> SoldOutMemory::beginPage(const std::string& sku) {
  const std::lock_guard held(mutex_);
  const auto found = articles_.find(sku);
  if (found == articles_.end()) return std::nullopt;
  Known& known = found->second;
  if (known.hasAll || known.booked->size() >= mostBooked) return std::nullopt;
  if (++known.asked * idsForOneAsked < pageAfter(known.booked->size())) return std::nullopt;
  if (!reading_.insert(sku).second) return std::nullopt;
  known.asked = 0;
  return known;
}

/// Unless the reading has begun anew meanwhile.
void SoldOutMemory::addPage(const std::string& sku, Known known) {
  const std::lock_guard held(mutex_);
  reading_.erase(sku);
  const auto found = articles_.find(sku);
  if (found == articles_.end() || found->second.stock.version != known.stock.version) return;
  known.asked = found->second.asked;
  known.until = found->second.until;
  put(sku, std::move(known));
}

/// The mutex is held.
void SoldOutMemory::put(const std::string& sku, Known known) {
  drop(sku);
  if (articles_.size() >= mostArticles || hashes_ + known.booked->size() > mostHashes) {
    articles_.clear();
    hashes_ = 0;
  }
  hashes_ += known.booked->size();
  articles_.emplace(sku, std::move(known));
}

void SoldOutMemory::forget(const std::string& sku) {
  const std::lock_guard held(mutex_);
  looking_.erase(sku);
  drop(sku);
}

void SoldOutMemory::drop(const std::string& sku) {
  const auto found = articles_.find(sku);
  if (found == articles_.end()) return;
  hashes_ -= found->second.booked->size();
  articles_.erase(found);
}

}  // namespace lockkeeper::inventory
