#include "settings/short_chapter.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "claimant.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/inventory/stock_service.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("it is not so that " + what);
}

Claimant rivalOf(const Claimant& who) {
  Claimant rival;
  rival.key = who.key;
  rival.share = who.share;
  return rival;
}

}  // namespace

ShortChapter::ShortChapter(std::string login) : login_(std::move(login)) {
  for (const char* const scheme : {"mysql+version", "mysql+getlock"}) {
    const auto driver = open(scheme, "?createTable=true");
    exclude(*driver, *driver);
    if (scheme == std::string("mysql+version")) share(*driver, *driver);
    limit(driver);
  }
  sell(true);
}

void ShortChapter::run() const {
  const auto rows = open("mysql+version");
  const auto otherRows = open("mysql+version");
  takeSeveral(*rows, *otherRows);
  exclude(*rows, *otherRows);
  share(*rows, *otherRows);
  exclude(*rows, *otherRows);
  limit(rows);
  exclude(*open("mysql+getlock"), *open("mysql+getlock"));
  sell();
}

std::shared_ptr<LockDriver> ShortChapter::open(const std::string& scheme, const std::string& query) const {
  StoreRegistry registry;
  mysql::use(registry);
  return registry.open(scheme + "://" + login_ + query);
}

void ShortChapter::exclude(LockDriver& holder, LockDriver& other) const {
  const Claimant who;
  const Claimant rival = rivalOf(who);
  const AcquireResult first = holder.acquire(who.request());
  require(granted(first), "a free key is granted");
  require(!granted(other.acquire(rival.request())), "a held key is busy");
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  holder.renew({&renewal, 1}, soon());
  require(renewal.outcome == RenewOutcome::renewed, "a held key is renewed");
  require(other.holder(who.key, soon()).has_value(), "a held key has a holder");
  require(holder.release(who.claim(), soon()) == ReleaseOutcome::released, "a held key is released");
  const AcquireResult second = other.acquire(rival.request());
  require(granted(second), "a released key is granted");
  require(std::get<Granted>(second).fence > std::get<Granted>(first).fence, "fences increase");
  require(other.release(rival.claim(), soon()) == ReleaseOutcome::released, "the next one releases it");
}

void ShortChapter::takeSeveral(LockDriver& holder, LockDriver& other) const {
  std::array<Claimant, 2> who;
  if (who[1].key < who[0].key) std::swap(who[0], who[1]);
  const std::array requests{who[0].request(), who[1].request()};
  const auto results = capability<Batchable>(holder)->acquireInOrder(requests);
  require(results.size() == 2 && granted(results[0]) && granted(results[1]), "two free keys are granted");
  const Claimant rival = rivalOf(who[1]);
  require(!granted(other.acquire(rival.request())), "the second key is busy");
  const std::array claims{who[0].claim(), who[1].claim()};
  const auto outcomes = capability<BatchReleasing>(holder)->releaseAll(claims, soon());
  require(outcomes == std::vector(2, ReleaseOutcome::released), "both keys are released");
  require(granted(other.acquire(rival.request())), "the second key is free");
  other.release(rival.claim(), soon());
}

void ShortChapter::share(LockDriver& holder, LockDriver& other) const {
  Claimant who;
  who.share = Share{.weight = 1, .limit = 2};
  const Claimant second = rivalOf(who);
  const Claimant third = rivalOf(who);
  require(granted(holder.acquire(who.request())), "the first share is granted");
  require(granted(other.acquire(second.request())), "the second share is granted");
  require(!granted(other.acquire(third.request())), "there is no third share");
  std::array<Renewal, 2> renewals{Renewal{.claim = who.claim(), .ttl = longTtl},
                                  Renewal{.claim = second.claim(), .ttl = longTtl}};
  holder.renew(renewals, soon());
  require(renewals[0].outcome == RenewOutcome::renewed && renewals[1].outcome == RenewOutcome::renewed,
          "shares are renewed");
  require(holder.release(who.claim(), soon()) == ReleaseOutcome::released, "the first share is released");
  require(granted(other.acquire(third.request())), "its permit is granted again");
  require(other.release(second.claim(), soon()) == ReleaseOutcome::released, "the second is released");
  require(other.release(third.claim(), soon()) == ReleaseOutcome::released, "the third is released");
}

void ShortChapter::limit(const std::shared_ptr<LockDriver>& driver) const {
  RateLimiter limiter(capability<RateDriver>(driver), {.operationTimeout = 10s});
  const std::string key = Claimant().key;
  for (const RateKind kind : {RateKind::tokenBucket, RateKind::fixedWindow, RateKind::slidingWindow}) {
    const bool isBucket = kind == RateKind::tokenBucket;
    const RatePolicy policy(std::string("p") + std::to_string(static_cast<int>(kind)),
                            {.kind = kind, .rate = {2, 300 * 24h}, .burst = isBucket ? 2 : 0});
    require(limiter.take(key, policy).allowed, "the first unit is given");
    require(limiter.take(key, policy).allowed, "the second unit is given");
    require(!limiter.take(key, policy).allowed, "there is no third unit");
  }
}

void ShortChapter::sell(bool makesTables) const {
  using namespace inventory;
  LockManager none(std::make_shared<MemoryDriver>());
  const std::string id = Token::generate(*systemRandom()).hex();
  const std::string sku = "s'\\%" + id;
  // Under gbk, its last byte and a backslash behind it would be one character.
  const std::string order = "\xe4\xb8\xad'; -- " + id;
  for (const Way way : {Way::conditionalUpdate, Way::optimistic}) {
    StockService stock("mysql://" + login_, none, way, {.rememberSoldOut = 0ms, .sessions = 1});
    if (makesTables) stock.createSchema();
    const std::string mark = std::to_string(static_cast<int>(way));
    stock.restock(sku + mark, 4, "r" + mark + id);
    require(stock.deduct(sku + mark, 2, order + mark) == Deduction::deducted, "an order is booked");
    require(stock.deduct(sku + mark, 2, order + mark) == Deduction::duplicate, "it is booked once");
    require(stock.deduct(sku + mark, 3, "o" + mark + id) == Deduction::soldOut,
            "no more is sold than there is");
    const std::vector<CartLine> cart{{sku + mark, 1}};
    require(stock.reserve(cart, 1h, "c" + mark + id).state == ReservationState::held, "a cart is reserved");
    require(stock.confirm("c" + mark + id) == ReservationState::confirmed, "it is sold");
    require(stock.takeBack(order + mark, sku + mark, 1, "b" + mark + id) == Return::returned,
            "it comes back");
    require(stock.level(sku + mark) == 2, "the stock is what was not sold");
    std::int64_t sum = 0;
    for (const LedgerEntry& each : stock.ledger(sku + mark)) sum += each.amount;
    require(sum == 2, "the ledger tells of each change");
  }
}

}  // namespace lockkeeper::test
