#include "sale/sale.h"

#include <Poco/UUIDGenerator.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "sale/progress.h"
#include "sale/servers.h"
#include "shop/shop.h"

namespace flash_sale {
namespace {

using lockkeeper::inventory::Way;

constexpr std::chrono::seconds expiryBound{5};

}  // namespace

SaleRoom::SaleRoom(const Settings& settings, lockkeeper::LockManager& locks)
    : settings_(settings),
      locks_(locks),
      run_(Poco::UUIDGenerator::defaultGenerator().createRandom().toString()) {
  openStock(settings_, locks_, Way::conditionalUpdate).createSchema();
}

SaleResult SaleRoom::sellWithoutLock() { return hold("no lock", std::nullopt, Buying::order); }

SaleResult SaleRoom::sell(Way way) { return hold(toString(way), way, Buying::order); }

SaleResult SaleRoom::sellByReservation() {
  return hold("reservations", Way::conditionalUpdate, Buying::reserve);
}

SaleResult SaleRoom::hold(const std::string& name, std::optional<Way> way, Buying buying) {
  const std::string sku = run_ + "-" + std::to_string(++sales_);
  lockkeeper::inventory::StockService stock = openStock(settings_, locks_, Way::conditionalUpdate);
  stock.restock(sku, settings_.stock);
  const Servers servers(settings_, locks_, way);
  SaleResult result{.way = name};
  {
    std::atomic<int> answered = 0;
    const Progress progress(name, answered, settings_.orders);
    result.rush = rush({.ports = servers.ports(),
                        .buying = buying,
                        .sku = sku,
                        .orderPrefix = sku + "-",
                        .orders = settings_.orders,
                        .customers = settings_.customers},
                       answered);
  }
  const auto left = [&] { return levelOverHttp(servers.ports().front(), sku); };
  // What nobody has paid for is for sale again when its time is over.
  const auto end = std::chrono::steady_clock::now() + heldFor + expiryBound;
  while (buying == Buying::reserve && left() + result.rush.sold < settings_.stock &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    stock.sweepExpired();
  }
  result.oversold = std::max<std::int64_t>(0, result.rush.sold - settings_.stock);
  result.balanced = left() + result.rush.sold == settings_.stock && result.rush.unanswered == 0;
  const auto wrong = stock.checkLedger();
  result.ledgerAgrees = std::ranges::none_of(wrong, [&](const auto& each) { return each.sku == sku; });
  return result;
}

}  // namespace flash_sale
