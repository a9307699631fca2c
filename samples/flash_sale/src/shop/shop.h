#pragma once

#include <cstdint>
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
};

/// The stock in settings.database. Ways that lock do it as lockkeeper.lock.* says.
inline lockkeeper::inventory::StockService openStock(const Settings& settings, lockkeeper::LockManager& locks,
                                                     lockkeeper::inventory::Way way) {
  const lockkeeper::LockOptions& lock = locks.defaults();
  const auto wait = lock.waitFor.value_or(std::chrono::milliseconds{0});
  return {settings.database, locks, way, {.lockTtl = *lock.ttl, .lockWait = wait, .sessions = 16}};
}

/// The shop as it should be.
class LockedShop final : public Shop {
 public:
  explicit LockedShop(lockkeeper::inventory::StockService stock) : stock_(std::move(stock)) {}

  lockkeeper::inventory::Deduction order(const std::string& sku, std::int64_t quantity,
                                         const std::string& orderId) override {
    return stock_.deduct(sku, quantity, orderId);
  }
  std::optional<std::int64_t> level(const std::string& sku) override { return stock_.level(sku); }

 private:
  lockkeeper::inventory::StockService stock_;
};

}  // namespace flash_sale
