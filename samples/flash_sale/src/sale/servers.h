#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "settings.h"
#include "shop/order_server.h"
#include "shop/shop.h"

namespace flash_sale {

/// The HTTP servers of a sale, while it lives: one in this process or, with settings.processes above 1, one
/// in each of so many processes of this program.
class Servers {
 public:
  Servers(const Settings& settings, lockkeeper::LockManager& locks,
          std::optional<lockkeeper::inventory::Way> way);
  ~Servers();

  const std::vector<std::uint16_t>& ports() const { return ports_; }

 private:
  class Process;

  std::unique_ptr<Shop> shop_;
  std::optional<OrderServer> here_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::uint16_t> ports_;
};

}  // namespace flash_sale
