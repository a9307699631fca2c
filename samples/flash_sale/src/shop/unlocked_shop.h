#pragma once

#include <Poco/Data/SessionPool.h>

#include <semaphore>
#include <string>

#include "shop/shop.h"

namespace flash_sale {

/// The shop as it is often written: reads the stock, thinks, writes what is left. Two customers who read
/// before either has written get the same piece. On the tables of lockkeeper::inventory.
class UnlockedShop final : public Shop {
 public:
  /// `database` as for StockService.
  UnlockedShop(const std::string& database, int sessions);

  lockkeeper::inventory::Deduction order(const std::string& sku, std::int64_t quantity,
                                         const std::string& orderId) override;
  std::optional<std::int64_t> level(const std::string& sku) override;

 private:
  class Use;

  std::counting_semaphore<> free_;
  Poco::Data::SessionPool sessions_;
};

}  // namespace flash_sale
