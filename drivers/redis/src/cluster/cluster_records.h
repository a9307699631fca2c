#pragma once

#include "cluster/node_parts.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/redis/redis_driver.h"
#include "lockkeeper/store/shared_records.h"

namespace lockkeeper::redis {

/// The shared records of a cluster: each table on the master of its slot. Thread-safe.
class ClusterRecords final : public SharedRecords {
 public:
  explicit ClusterRecords(NodeParts<RedisDriver>& nodes) : nodes_(nodes) {}

  std::vector<SharedRecord> write(std::string_view table, std::string_view name, std::string_view text,
                                  std::optional<std::chrono::milliseconds> keep, Instant deadline) override;
  std::vector<SharedRecord> read(std::string_view table, Instant deadline) override;
  bool replace(std::string_view table, std::string_view name, const std::optional<std::string>& expected,
               std::string_view text, const KnownRecords& known, Instant deadline) override;

 private:
  template <class Call>
  auto at(std::string_view table, Instant deadline, Call&& call);

  const ForkGuard forkGuard_;
  NodeParts<RedisDriver>& nodes_;
};

}  // namespace lockkeeper::redis
