#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "database_server.h"
#include "etcd_cluster.h"

namespace lockkeeper::test {

/// A process that stands in a store's queue for a key.
struct QueuedCaller {
  std::string process;
  std::string key;
};

/// Asks a store who stands in the queues of the keys of a history. One thread at a time.
using QueueLook = std::function<std::vector<QueuedCaller>()>;

/// Of a store whose driver lists waiters. The processes' names are the owners of their claims.
QueueLook queuesOf(const std::string& uri);

/// The same of etcd.
QueueLook queuesOf(std::shared_ptr<const EtcdCluster> cluster);

/// Of sessions that wait for a named lock. The processes' names are those of their accounts.
QueueLook queuesOf(std::shared_ptr<const DatabaseServer> server);

}  // namespace lockkeeper::test
