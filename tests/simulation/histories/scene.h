#pragma once

#include <memory>
#include <vector>

#include "simulation/etcd/cluster.h"
#include "simulation/judges/admissions.h"
#include "simulation/judges/arrivals.h"
#include "simulation/judges/believers.h"
#include "simulation/judges/judge.h"
#include "simulation/judges/leaders.h"
#include "simulation/judges/readings.h"
#include "simulation/judges/ticks.h"
#include "simulation/machine/scheduler.h"
#include "simulation/network/network.h"
#include "simulation/redis/cluster.h"
#include "simulation/redis/node.h"
#include "simulation/redis/sentinel.h"

namespace lockkeeper::simulation {

/// Those of the limits that Admissions counts (clients/limit_client.cpp).
std::vector<RateLaw> lawsOfLimits();

/// What the processes of a history share.
struct Scene {
  explicit Scene(const Choice& choice) : scheduler(choice), network(scheduler, choice.seed) {}

  Scheduler scheduler;
  std::vector<std::unique_ptr<RedisNode>> nodes;
  std::unique_ptr<EtcdCluster> etcd;  // instead of them
  Network network;
  std::vector<std::unique_ptr<SentinelNode>> sentinels;
  std::unique_ptr<Cluster> cluster;
  int working = 0;  ///< Processes whose workers have not ended yet. Then the network has no more faults.
  Judge judge{scheduler};
  Believers believers{scheduler, judge};
  Admissions admissions{judge, lawsOfLimits()};
  Readings readings{scheduler, judge};
  Arrivals arrivals{scheduler, judge};
  Leaders leaders{scheduler, judge};
  Ticks ticks{scheduler, judge};
};

}  // namespace lockkeeper::simulation
