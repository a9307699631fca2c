#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/store/shared_records.h"
#include "session/sessions.h"

namespace lockkeeper::postgres {

/// The shared records of a store: rows of a table of its own. They have one session, made by the first call,
/// so that heartbeats do not wait behind locks. Thread-safe.
///
/// A write and a replacement in one table exclude each other by an advisory lock of their transactions, which
/// ends with them; writes do not exclude each other. So a replacement knows of each record that was written
/// before it, and a writer that comes later sees what it has replaced.
class PostgresRecords final : public SharedRecords {
 public:
  /// Connects nowhere yet.
  PostgresRecords(const ServerOptions& options, const std::string& table, const Environment& environment);

  std::vector<SharedRecord> write(std::string_view table, std::string_view name, std::string_view text,
                                  std::optional<std::chrono::milliseconds> keep,
                                  std::span<const WantedRecord> wanted, Instant deadline) override;
  std::vector<SharedRecord> read(std::string_view table, Instant deadline) override;
  bool replace(std::string_view table, std::string_view name, const std::optional<std::string>& expected,
               std::string_view text, std::span<const KnownRecord> known, Instant deadline) override;

 private:
  /// The statements. In all of them $1 is the table of records.
  struct Texts {
    explicit Texts(const std::string& records);

    std::string share;    ///< Keeps replacements out until the transaction ends.
    std::string exclude;  ///< Writes, too.
    std::string write;    ///< $2 name, $3 text, $4 for how many ms, or NULL.
    std::string wanted;   ///< $2 names, $3 stamps that are known: arrays.
    std::string clear;
    std::string read;
    /// $2 name, $3 the text that is expected or NULL, $4 text, $5 names and $6 stamps of the known: arrays.
    std::string replace;
  };

  const ForkGuard forkGuard_;
  const Texts texts_;
  Sessions sessions_;
};

}  // namespace lockkeeper::postgres
