#pragma once

#include <Poco/Util/AbstractConfiguration.h>

#include <cstdint>
#include <string>

#include "lockkeeper/inventory/stock_options.h"

namespace flash_sale {

/// What flash_sale.properties and the command line say, apart from what is lockkeeper's.
struct Settings {
  std::string store;     ///< Where the locks are, for people: without the password.
  std::string database;  ///< Empty: a temporary SQLite file.
  int stock;
  int orders;
  int customers;
  std::uint16_t port;
  lockkeeper::inventory::Way way;

  /// Throws lockkeeper::ConfigError for a key that is unknown or a value that is not allowed.
  static Settings read(const Poco::Util::AbstractConfiguration& config);
};

}  // namespace flash_sale
