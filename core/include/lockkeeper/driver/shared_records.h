#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/clock.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

/// A small named text that processes share.
struct SharedRecord {
  std::string name;
  std::string text;
  std::chrono::milliseconds age{};  ///< Since it was written, on the store's clock.
};

/// A capability: the store keeps small texts beside its locks, by which processes agree on something. They
/// lie in tables; the first record makes its table. Tables and names are 1 to 128 printable characters, texts
/// have up to 64 KiB. Each call is one step in the store; errors and deadlines are as for LockDriver.
/// Thread-safe.
class LOCKKEEPER_CORE_EXPORT SharedRecords {
 public:
  virtual ~SharedRecords() = default;

  /// Writes `text` under `name`, in place of what is there, and returns all records of the table, this one
  /// included. It disappears after `keep`; empty: never.
  virtual std::vector<SharedRecord> write(std::string_view table, std::string_view name,
                                          std::string_view text,
                                          std::optional<std::chrono::milliseconds> keep,
                                          Instant deadline) = 0;

  /// All records of the table, in no order.
  virtual std::vector<SharedRecord> read(std::string_view table, Instant deadline) = 0;

  /// Writes `text` for ever if what is there now is `expected` (empty: nothing is). False when it is not.
  [[nodiscard]] virtual bool replace(std::string_view table, std::string_view name,
                                     const std::optional<std::string>& expected, std::string_view text,
                                     Instant deadline) = 0;
};

}  // namespace lockkeeper
