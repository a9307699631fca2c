#pragma once

#include "lockkeeper/store/shared_records.h"
#include "store/redis_store.h"

namespace lockkeeper::redis {

/// The shared records of one server. A table is a hash under a name that no lock may have. It has a
/// connection of its own, made by the first call, so that heartbeats do not wait behind locks. Thread-safe.
class RedisRecords final : public SharedRecords {
 public:
  RedisRecords(RedisOptions options, Environment environment);

  std::vector<SharedRecord> write(std::string_view table, std::string_view name, std::string_view text,
                                  std::optional<std::chrono::milliseconds> keep, Instant deadline) override;
  std::vector<SharedRecord> read(std::string_view table, Instant deadline) override;
  bool replace(std::string_view table, std::string_view name, const std::optional<std::string>& expected,
               std::string_view text, const KnownRecords& known, Instant deadline) override;

 private:
  const Reply& answer(const Request& request);
  std::vector<SharedRecord> recordsIn(const Request& request);

  RedisStore store_;
};

}  // namespace lockkeeper::redis
