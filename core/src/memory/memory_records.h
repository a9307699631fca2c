#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/internal/process_mutex.h"
#include "lockkeeper/store/shared_records.h"

namespace lockkeeper::detail {

/// The shared records of a MemoryDriver. Thread-safe.
class MemoryRecords final : public SharedRecords {
 public:
  explicit MemoryRecords(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  std::vector<SharedRecord> write(std::string_view table, std::string_view name, std::string_view text,
                                  std::optional<std::chrono::milliseconds> keep,
                                  std::span<const WantedRecord> wanted, Instant deadline) override;
  std::vector<SharedRecord> read(std::string_view table, Instant deadline) override;
  bool replace(std::string_view table, std::string_view name, const std::optional<std::string>& expected,
               std::string_view text, std::span<const KnownRecord> known, Instant deadline) override;

 private:
  struct Written {
    std::string text;
    Instant since;
    std::uint64_t stamp;
    Instant end;
  };
  using Table = std::map<std::string, Written, std::less<>>;

  Table& current(std::string_view table);
  SharedRecord shown(const Table::value_type& entry) const;

  const std::shared_ptr<Clock> clock_;
  ProcessMutex mutex_;
  std::uint64_t writes_ = 0;
  std::map<std::string, Table, std::less<>> tables_;
};

}  // namespace lockkeeper::detail
