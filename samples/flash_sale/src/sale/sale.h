#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockkeeper/inventory/stock_options.h"
#include "lockkeeper/lock_manager.h"
#include "sale/clients.h"
#include "settings.h"

namespace flash_sale {

/// One row of the table.
struct SaleResult {
  std::string way;
  Rush rush{};
  std::int64_t oversold = 0;  ///< How many more were sold than there were.
  bool balanced = false;      ///< What is left + what was sold = what was there.
  bool ledgerAgrees = false;  ///< What is left = the sum of all changes.
};

/// Holds flash sales, each of a fresh article, on one database.
class SaleRoom {
 public:
  /// Makes the tables if need be.
  SaleRoom(const Settings& settings, lockkeeper::LockManager& locks);

  SaleResult sellWithoutLock();
  SaleResult sell(lockkeeper::inventory::Way way);
  /// The customers reserve and pay.
  SaleResult sellByReservation();

 private:
  SaleResult hold(const std::string& name, std::optional<lockkeeper::inventory::Way> way, Buying buying);

  const Settings& settings_;
  lockkeeper::LockManager& locks_;
  const std::string run_;  ///< Keeps the articles of this run apart from those of earlier ones.
  int sales_ = 0;
};

}  // namespace flash_sale
