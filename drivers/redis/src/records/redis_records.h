#pragma once

#include <memory>

#include "cluster/topology.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/store/shared_records.h"
#include "store/redis_store.h"

namespace lockkeeper::redis {

/// The shared records of a store. A table is a hash under a name that no lock may have. Each server has a
/// connection of its own for them, made by the first call, so that heartbeats do not wait behind locks.
/// Thread-safe.
class RedisRecords final : public SharedRecords {
 public:
  /// As Topology.
  RedisRecords(std::shared_ptr<ClusterMap> map, const RedisOptions& options, const Environment& environment);

  std::vector<SharedRecord> write(std::string_view table, std::string_view name, std::string_view text,
                                  std::optional<std::chrono::milliseconds> keep,
                                  std::span<const WantedRecord> wanted, Instant deadline) override;
  std::vector<SharedRecord> read(std::string_view table, Instant deadline) override;
  bool replace(std::string_view table, std::string_view name, const std::optional<std::string>& expected,
               std::string_view text, std::span<const KnownRecord> known, Instant deadline) override;

 private:
  using Arguments = std::span<const std::string_view>;

  std::vector<SharedRecord> ask(const Script& script, std::string_view table, Arguments arguments,
                                Instant deadline);

  const ForkGuard forkGuard_;
  Topology<RedisStore> servers_;
};

}  // namespace lockkeeper::redis
