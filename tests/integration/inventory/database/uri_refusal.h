#pragma once

#include <memory>
#include <string>

#include "lockkeeper/error.h"
#include "lockkeeper/inventory/stock_service.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"
#include "refusal.h"

namespace lockkeeper::test {

/// For services whose locks do not matter.
inline LockManager& anyManager() {
  static LockManager manager(std::make_shared<MemoryDriver>());
  return manager;
}

/// Why a service on this database is refused, or "accepted".
inline std::string uriRefusal(const std::string& uri) {
  return refusalOf<ConfigError>(
      [&] { inventory::StockService(uri, anyManager(), inventory::Way::conditionalUpdate); });
}

}  // namespace lockkeeper::test
