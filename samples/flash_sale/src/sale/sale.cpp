#include "sale/sale.h"

#include <Poco/UUIDGenerator.h>

#include <algorithm>

#include "sale/progress.h"
#include "shop/order_server.h"
#include "shop/unlocked_shop.h"

namespace flash_sale {

using lockkeeper::inventory::Way;

SaleRoom::SaleRoom(const Settings& settings, lockkeeper::LockManager& locks)
    : settings_(settings),
      locks_(locks),
      run_(Poco::UUIDGenerator::defaultGenerator().createRandom().toString()) {
  openStock(settings_, locks_, Way::conditionalUpdate).createSchema();
}

SaleResult SaleRoom::sellWithoutLock() {
  UnlockedShop shop(settings_.database, settings_.customers);
  return hold("no lock", shop);
}

SaleResult SaleRoom::sell(Way way) {
  LockedShop shop(openStock(settings_, locks_, way));
  return hold(toString(way), shop);
}

SaleResult SaleRoom::hold(const std::string& way, Shop& shop) {
  const std::string sku = run_ + "-" + std::to_string(++sales_);
  openStock(settings_, locks_, Way::conditionalUpdate).restock(sku, settings_.stock);
  OrderServer server(shop, 0, settings_.customers + 1);
  SaleResult result{.way = way};
  {
    std::atomic<int> answered = 0;
    const Progress progress(way, answered, settings_.orders);
    result.rush = rush({.port = server.port(),
                        .sku = sku,
                        .orderPrefix = sku + "-",
                        .orders = settings_.orders,
                        .customers = settings_.customers},
                       answered);
  }
  const std::int64_t left = levelOverHttp(server.port(), sku);
  result.oversold = std::max<std::int64_t>(0, result.rush.sold - settings_.stock);
  result.balanced = left + result.rush.sold == settings_.stock && result.rush.unanswered == 0;
  const auto wrong = openStock(settings_, locks_, Way::conditionalUpdate).checkLedger();
  result.ledgerAgrees = std::ranges::none_of(wrong, [&](const auto& each) { return each.sku == sku; });
  return result;
}

}  // namespace flash_sale
