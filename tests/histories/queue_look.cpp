#include "queue_look.h"

#include <chrono>
#include <sstream>

#include "history_keys.h"
#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::test {

QueueLook queuesOf(const std::string& uri) {
  StoreRegistry registry;
  redis::use(registry);
  return [driver = registry.open(uri)] {
    std::vector<std::string> keys(historyKeys.begin(), historyKeys.end());
    keys.emplace_back(pool);
    const Instant deadline = systemClock()->now() + std::chrono::seconds{2};
    const auto waiters = capability<WaiterBrowsable>(*driver)->waiters(keys, deadline);
    std::vector<QueuedCaller> found;
    for (std::size_t index = 0; index < keys.size(); ++index) {
      for (const Waiter& each : waiters[index]) found.push_back({each.owner, keys[index]});
    }
    return found;
  };
}

QueueLook queuesOf(std::shared_ptr<const EtcdCluster> cluster) {
  return [cluster = std::move(cluster)] {
    std::vector<QueuedCaller> found;
    for (const EtcdCluster::Waiting& each : cluster->waitingClaims())
      found.push_back({each.owner, each.lock});
    return found;
  };
}

QueueLook queuesOf(std::shared_ptr<const DatabaseServer> server) {
  return [server = std::move(server)] {
    // A line is "p1 SELECT …,GET_LOCK('a',2)". Names of locks that are plain are their keys.
    std::istringstream lines(
        server->ask("SELECT GROUP_CONCAT(CONCAT(user, ' ', info) SEPARATOR '\n')"
                    " FROM information_schema.processlist WHERE state = 'User lock'"));
    std::vector<QueuedCaller> found;
    for (std::string line; std::getline(lines, line);) {
      const std::string before = "GET_LOCK('";
      const std::size_t at = line.find(before);
      if (at == std::string::npos) continue;
      const std::size_t from = at + before.size();
      found.push_back({line.substr(0, line.find(' ')), line.substr(from, line.find('\'', from) - from)});
    }
    return found;
  };
}

}  // namespace lockkeeper::test
