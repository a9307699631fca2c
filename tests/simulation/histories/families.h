#pragma once

#include "simulation/histories/failovers.h"
#include "simulation/histories/history.h"

namespace lockkeeper::simulation {

template <class Kind>
std::unique_ptr<Trouble> troubleOf(Scene& scene, int processes, Chance& chance) {
  return std::make_unique<Kind>(scene, processes, chance);
}

/// Locks and shares of two keys on one Redis.
inline constexpr Family lockFamily{"redis://10.0.0.1", 1, 0, 0, &troubleOf<TroubleOfOne>, &lockClient};

/// Locks on five nodes. A node that restarts keeps away for no longer than it must: the ttl of the locks.
inline constexpr Family redlockFamily{
    "redlock://10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5?restartGuard=1s",
    5,
    0.008,
    2,
    &troubleOf<TroubleOfQuorum>,
    &wholeLockClient,
    nullptr,
    true};

/// Permits, shares and several keys at once, on one Redis.
inline constexpr Family permitFamily{"redis://10.0.0.1", 1, 0.008, 0, &troubleOf<TroubleOfOne>,
                                     &permitClient};

/// Limits on one Redis.
inline constexpr Family limitFamily{"redis://10.0.0.1", 1, 0.008, 0, &troubleOf<TroubleOfOne>, &limitClient};

/// Locks and shares on a master with one replica, which has each grant, and three sentinels.
inline constexpr Family sentinelFamily{"redis+sentinel://10.0.1.1,10.0.1.2,10.0.1.3/master?minReplicas=1",
                                       2,
                                       0,
                                       0,
                                       &troubleOf<TroubleOfSentinels>,
                                       &renewedLockClient,
                                       &arrangeSentinels};

/// The same on a cluster of three masters, with a replica each.
inline constexpr Family clusterFamily{
    "redis+cluster://10.0.0.1,10.0.0.2,10.0.0.3?minReplicas=1&replicaTimeout=50ms",
    6,
    0,
    0,
    &troubleOf<TroubleOfCluster>,
    &renewedLockClient,
    &arrangeCluster};

/// Locks of processes that are on the way from one Redis to another.
inline constexpr Family migrationFamily{"redis://10.0.0.2", 3,       0.008, 0, &troubleOf<TroubleOfMigration>,
                                        &migrationClient,   nullptr, true};

/// Locks and shares of two keys on an etcd cluster.
inline constexpr Family etcdFamily{"etcd://10.0.0.1,10.0.0.2,10.0.0.3", 0,          0, 0,
                                   &troubleOf<TroubleOfEtcd>,           &lockClient};

/// A value that is cached on one Redis.
inline constexpr Family valueFamily{"redis://10.0.0.1",          1,           0.008, 0,
                                    &troubleOf<TroubleOfValues>, &valueClient};

/// Latches and a barrier on one Redis.
inline constexpr Family latchFamily{.uri = "redis://10.0.0.1",
                                    .nodes = 1,
                                    .nodeDrift = 0.008,
                                    .keep = 0,
                                    .trouble = &troubleOf<TroubleOfOne>,
                                    .client = &latchClient,
                                    .leavesFor = std::chrono::seconds(100)};

/// One leader by one Redis.
inline constexpr Family electionFamily{"redis://10.0.0.1", 1, 0.008, 0, &troubleOf<TroubleOfOne>,
                                       &electionClient};

/// Ticks that one of all instances runs, by one Redis, which remembers each for minutes.
inline constexpr Family taskFamily{.uri = "redis://10.0.0.1",
                                   .nodes = 1,
                                   .nodeDrift = 0,
                                   .keep = 0,
                                   .trouble = &troubleOf<TroubleOfOne>,
                                   .client = &taskClient,
                                   .leavesFor = std::chrono::seconds(300)};

inline constexpr const Family* families[] = {&lockFamily,     &redlockFamily, &permitFamily,    &limitFamily,
                                             &sentinelFamily, &clusterFamily, &migrationFamily, &etcdFamily,
                                             &valueFamily,    &latchFamily,   &electionFamily,  &taskFamily};

}  // namespace lockkeeper::simulation
