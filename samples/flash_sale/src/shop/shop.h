#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lockkeeper/inventory/stock_service.h"
#include "lockkeeper/lock_manager.h"
#include "settings.h"

namespace flash_sale {

/// What the HTTP server sells from. Thread-safe.
class Shop {
 public:
  virtual ~Shop() = default;
  virtual lockkeeper::inventory::Deduction order(const std::string& sku, std::int64_t quantity,
                                                 const std::string& orderId) = 0;
  virtual std::optional<std::int64_t> level(const std::string& sku) = 0;
  /// What holds goods for those who have still to pay; null where there is no such thing.
  virtual lockkeeper::inventory::StockService* reservations() { return nullptr; }
};

/// The stock in settings.database. Ways that lock do it as lockkeeper.lock.* says.
lockkeeper::inventory::StockService openStock(const Settings& settings, lockkeeper::LockManager& locks,
                                              lockkeeper::inventory::Way way);

/// The shop that sells in this way; without one, as shops are often written.
std::unique_ptr<Shop> openShop(const Settings& settings, lockkeeper::LockManager& locks,
                               std::optional<lockkeeper::inventory::Way> way);

}  // namespace flash_sale
