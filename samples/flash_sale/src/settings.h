#pragma once

#include <Poco/Util/AbstractConfiguration.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockkeeper/inventory/stock_options.h"

namespace flash_sale {

/// The way as flashSale.way names it; "noLock" for none.
const char* nameOf(std::optional<lockkeeper::inventory::Way> way);

/// What flash_sale.properties and the command line say, apart from what is lockkeeper's.
struct Settings {
  std::string store;       ///< Where the locks are, for people: without the password.
  std::string database;    ///< Empty: a temporary SQLite file.
  bool temporary = false;  ///< The database is a file that this process has made for itself.
  int stock;
  int orders;
  int customers;
  int processes;
  std::uint16_t port;
  std::optional<lockkeeper::inventory::Way> way;  ///< None: as shops are often written.
  std::vector<std::string> command{};             ///< What this process was started by.

  /// Throws lockkeeper::ConfigError for a key that is unknown or a value that is not allowed.
  static Settings read(const Poco::Util::AbstractConfiguration& config);
};

}  // namespace flash_sale
