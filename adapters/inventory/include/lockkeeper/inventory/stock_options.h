#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "lockkeeper/environment.h"
#include "lockkeeper/inventory/export.h"

namespace lockkeeper::inventory {

/// How a deduction excludes other deductions of the same article. With each way, the database decides in the
/// end: stock never becomes negative, and no order is lost or booked twice. docs/inventory.md compares them.
enum class Way {
  fencedRow,  ///< Takes the lock, and claims the row with its fence before reading. So the row refuses a
              ///< former holder whose lease has ended. Needs a lock store that promises fences.
  conditionalUpdate,  ///< Takes no lock: one UPDATE … WHERE level >= quantity deducts all orders of an
                      ///< article that arrived while earlier ones were being booked. The fastest.
  optimistic,  ///< Takes no lock: reads, decides, and writes if the row has not changed. Otherwise it tries
               ///< again in a new transaction, a few times.
  lockedOptimistic,  ///< Takes the lock to avoid conflicts, and then sells as `optimistic` does. Its
                     ///< correctness does not depend on the lock.
};

/// "fenced row", "conditional update", "optimistic" or "lock + optimistic".
LOCKKEEPER_INVENTORY_EXPORT const char* toString(Way way) noexcept;

/// Options of a StockService. Its constructor refuses values out of range.
struct StockOptions {
  /// The ttl and the wait of the lock (see LockOptions), for the ways that take it. Each article has a lock,
  /// whose key is "stock:" and the sku.
  std::chrono::milliseconds lockTtl{std::chrono::seconds{10}};
  std::chrono::milliseconds lockWait{std::chrono::seconds{1}};

  /// The timeout of a connect, of a wait for a free session and of a wait for a row lock: 1 s to 1 h, in
  /// whole seconds, as databases count. A transaction on a server is ended after twice that time.
  std::chrono::seconds operationTimeout{2};

  /// For Way::conditionalUpdate: how long the service remembers that an article was sold out: 0 ms to 1 min.
  /// In that time it refuses orders for more than there was without asking the database, even if another
  /// service restocks the article. What this service restocks is for sale at once. An order that another
  /// service booked in that time, from goods that came back in that time, is `soldOut` when it is repeated
  /// here, and `duplicate` afterwards. 0: each order asks the database.
  std::chrono::milliseconds rememberSoldOut{100};

  /// The most database sessions that are open at once: 1 to 256. On SQLite, which has one writer at a time,
  /// there is always one.
  std::size_t sessions = 8;

  /// What the ledger names as the author of changes, such as "checkout": 0 to 64 bytes.
  std::string who{};

  Environment environment{};
};

}  // namespace lockkeeper::inventory
