#include "cluster/cluster_records.h"

#include "store/companion_key.h"

namespace lockkeeper::redis {

template <class Call>
auto ClusterRecords::at(std::string_view table, Instant deadline, Call&& call) {
  forkGuard_.check();
  return nodes_.at(hashSlot(tableKey(table)), deadline,
                   [&](RedisDriver& node) { return call(*capability<SharedRecords>(node)); });
}

std::vector<SharedRecord> ClusterRecords::write(std::string_view table, std::string_view name,
                                                std::string_view text,
                                                std::optional<std::chrono::milliseconds> keep,
                                                Instant deadline) {
  return at(table, deadline,
            [&](SharedRecords& records) { return records.write(table, name, text, keep, deadline); });
}

std::vector<SharedRecord> ClusterRecords::read(std::string_view table, Instant deadline) {
  return at(table, deadline, [&](SharedRecords& records) { return records.read(table, deadline); });
}

bool ClusterRecords::replace(std::string_view table, std::string_view name,
                             const std::optional<std::string>& expected, std::string_view text,
                             const KnownRecords& known, Instant deadline) {
  return at(table, deadline, [&](SharedRecords& records) {
    return records.replace(table, name, expected, text, known, deadline);
  });
}

}  // namespace lockkeeper::redis
