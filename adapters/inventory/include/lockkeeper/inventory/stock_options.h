#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "lockkeeper/environment.h"
#include "lockkeeper/inventory/export.h"

namespace lockkeeper::inventory {

/// How a deduction keeps other deductions of the same article out. In every way the database has the last
/// word: stock never gets negative, and an order is never lost or booked twice. docs/inventory.md compares
/// them.
enum class Way {
  fencedRow,  ///< Takes the lock and claims the row with its fence before it reads, so that the row refuses a
              ///< former holder whose lease has ended. Needs a lock store that promises fences.
  conditionalUpdate,  ///< Takes no lock: one UPDATE … WHERE level >= quantity, for all orders of an article
                      ///< that have come while others of it were being booked. The fastest.
  optimistic,  ///< Takes no lock: reads, decides, and writes if the row is still the one that it read; else
               ///< all over again, some times, in new transactions.
  lockedOptimistic,  ///< Takes the lock so that nobody else is in the way, and then sells as optimistic does,
                     ///< so that nothing depends on the lock.
};

/// "fenced row", "conditional update", "optimistic" or "lock + optimistic".
LOCKKEEPER_INVENTORY_EXPORT const char* toString(Way way) noexcept;

/// How a StockService works. Values outside their range are refused by its constructor.
struct StockOptions {
  /// For the ways that take the lock, as in LockOptions. One lock guards one article; its key is "stock:" and
  /// the sku.
  std::chrono::milliseconds lockTtl{std::chrono::seconds{10}};
  std::chrono::milliseconds lockWait{std::chrono::seconds{1}};

  /// How long one connect, one wait for a free session and one wait for a row lock may take: 1 s to 1 h;
  /// databases count whole seconds. A whole transaction on a server is cut off after twice as long.
  std::chrono::seconds operationTimeout{2};

  /// For Way::conditionalUpdate: how long it may take to notice that somebody else has restocked an article
  /// that was sold out: 0 ms to 1 min. That long, orders for more than there was are refused without asking
  /// the database. What this service restocks is for sale at once. An order that another service has booked
  /// meanwhile, from goods that somebody else has put back meanwhile, is refused with them if it is repeated
  /// here: `soldOut`, and `duplicate` after that time. 0: each order asks.
  std::chrono::milliseconds rememberSoldOut{100};

  /// Most database sessions open at once: 1 to 256. SQLite has one writer at a time, and gets one session.
  std::size_t sessions = 8;

  /// Who changes the stock, for the ledger, such as "checkout": 0 to 64 bytes.
  std::string who{};

  Environment environment{};
};

}  // namespace lockkeeper::inventory
