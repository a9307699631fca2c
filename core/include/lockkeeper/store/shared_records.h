#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

/// A small named text that processes share.
struct SharedRecord {
  std::string name;
  std::string text;
  std::chrono::milliseconds age{};  ///< Since it was written, on the store's clock.
  /// Changes with each write of the record, so that a reader sees that it was written again. Compare it for
  /// equality only.
  std::uint64_t stamp = 0;
};

/// A record that a caller of write() wants to see.
struct WantedRecord {
  std::string_view name;
  std::uint64_t known =
      0;  ///< The stamp that the caller has seen: if it is the present one, the text is omitted.
};

/// A record that a caller of replace() has seen; it may be gone by then.
struct KnownRecord {
  std::string_view name;
  std::uint64_t stamp = 0;  ///< As it was seen, if the record must not be written again; 0: it may be.
};

/// A capability: the store keeps small texts beside its locks, through which processes agree on something.
/// Records are in tables; the first record creates its table. Names of tables and records have 1 to 128
/// printable characters, texts up to 64 KiB. Each call is one atomic step in the store; errors and deadlines
/// are as for LockDriver. The cost of write() does not depend on the number of records in the table.
/// Thread-safe.
class LOCKKEEPER_CORE_EXPORT SharedRecords {
 public:
  virtual ~SharedRecords() = default;

  /// Writes `text` under `name`, in place of the present text, and returns those of the `wanted` records that
  /// exist. The record disappears after `keep`; if that is empty, never.
  virtual std::vector<SharedRecord> write(std::string_view table, std::string_view name,
                                          std::string_view text,
                                          std::optional<std::chrono::milliseconds> keep,
                                          std::span<const WantedRecord> wanted, Instant deadline) = 0;

  /// All records of the table, in any order. Also removes expired ones.
  virtual std::vector<SharedRecord> read(std::string_view table, Instant deadline) = 0;

  /// Writes `text`, without an expiry, if the present text is `expected` (empty: there is no record) and the
  /// table has no other records than this one and the `known` ones. If `known` is empty, other records do not
  /// matter. Returns false when it does not write.
  [[nodiscard]] virtual bool replace(std::string_view table, std::string_view name,
                                     const std::optional<std::string>& expected, std::string_view text,
                                     std::span<const KnownRecord> known, Instant deadline) = 0;
};

}  // namespace lockkeeper
