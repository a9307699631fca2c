#pragma once

#include <Poco/Util/AbstractConfiguration.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "lockkeeper/inventory/stock_options.h"

namespace flash_sale {

/// What flash_sale.properties and the command line say.
struct Settings {
  std::string store;
  std::string keyNamespace;
  std::chrono::milliseconds lockTtl;
  std::chrono::milliseconds lockWait;
  std::string database;  ///< Empty: a temporary SQLite file.
  int stock;
  int orders;
  int customers;
  std::uint16_t port;
  lockkeeper::inventory::Way way;

  /// Throws lockkeeper::ConfigError for a key that is unknown or a value that is not allowed.
  static Settings read(const Poco::Util::AbstractConfiguration& config);

  lockkeeper::inventory::StockOptions stockOptions() const;
};

}  // namespace flash_sale
