#include "shop/shop.h"

#include <utility>

#include "shop/unlocked_shop.h"

namespace flash_sale {
namespace {

using lockkeeper::inventory::Deduction;
using lockkeeper::inventory::StockService;
using lockkeeper::inventory::Way;

constexpr int sessions = 16;

/// The shop as it should be.
class LockedShop final : public Shop {
 public:
  explicit LockedShop(StockService stock) : stock_(std::move(stock)) {}

  Deduction order(const std::string& sku, std::int64_t quantity, const std::string& orderId) override {
    return stock_.deduct(sku, quantity, orderId);
  }
  std::optional<std::int64_t> level(const std::string& sku) override { return stock_.level(sku); }
  StockService* reservations() override { return &stock_; }

 private:
  StockService stock_;
};

}  // namespace

StockService openStock(const Settings& settings, lockkeeper::LockManager& locks, Way way) {
  const lockkeeper::LockOptions& lock = locks.defaults();
  const auto wait = lock.waitFor.value_or(std::chrono::milliseconds{0});
  return {settings.database, locks, way, {.lockTtl = *lock.ttl, .lockWait = wait, .sessions = sessions}};
}

std::unique_ptr<Shop> openShop(const Settings& settings, lockkeeper::LockManager& locks,
                               std::optional<Way> way) {
  if (!way) return std::make_unique<UnlockedShop>(settings.database, sessions);
  return std::make_unique<LockedShop>(openStock(settings, locks, *way));
}

}  // namespace flash_sale
