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
  /// Another one after each write of the record. Only to be compared for equality: a reader sees by it that
  /// the record was written again.
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

/// A capability: the store keeps small texts beside its locks, by which processes agree on something. They
/// lie in tables; the first record makes its table. Tables and names are 1 to 128 printable characters, texts
/// have up to 64 KiB. Each call is one step in the store; errors and deadlines are as for LockDriver.
/// What write() costs does not depend on how many records the table has. Thread-safe.
class LOCKKEEPER_CORE_EXPORT SharedRecords {
 public:
  virtual ~SharedRecords() = default;

  /// Writes `text` under `name`, in place of what is there, and returns those of the `wanted` records that
  /// exist. It disappears after `keep`; empty: never.
  virtual std::vector<SharedRecord> write(std::string_view table, std::string_view name,
                                          std::string_view text,
                                          std::optional<std::chrono::milliseconds> keep,
                                          std::span<const WantedRecord> wanted, Instant deadline) = 0;

  /// All records of the table, in no order. Also removes those whose time is over.
  virtual std::vector<SharedRecord> read(std::string_view table, Instant deadline) = 0;

  /// Writes `text` for ever if what is there now is `expected` (empty: nothing is), and if the table has no
  /// other records than this one and those that are `known`; empty: whatever it has. False when it does not
  /// write.
  [[nodiscard]] virtual bool replace(std::string_view table, std::string_view name,
                                     const std::optional<std::string>& expected, std::string_view text,
                                     std::span<const KnownRecord> known, Instant deadline) = 0;
};

}  // namespace lockkeeper
