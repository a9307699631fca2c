#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "simulation/histories/trouble.h"

namespace lockkeeper::simulation {

/// The second node is a replica of the first, and three sentinels know it.
void arrangeSentinels(Scene& scene);
/// The second half of the nodes are replicas of the first half, which are the masters of a cluster.
void arrangeCluster(Scene& scene);

/// Masters with one replica each, which takes over when its master has ended, or only the processes still
/// reach that. What the replica has not got by then is lost.
class TroubleOfReplicas : public Trouble {
 public:
  using Trouble::Trouble;

 protected:
  struct Failover {
    bool crash;
    Time lag;     ///< Before that, nothing gets to the replica any more.
    Time length;  ///< Until the replica takes over.
    Time until;   ///< For so long, a master that has crashed is away, or one that is cut off goes on.
  };
  Failover chooseFailover(bool crash, Time until);
  /// Nothing when another change is under way.
  void failover(RedisNode& former, const Failover& how, const std::function<void()>& promote,
                const std::function<void()>& demote);

  bool changes_ = false;  // one change at a time
};

class TroubleOfSentinels final : public TroubleOfReplicas {
 public:
  using TroubleOfReplicas::TroubleOfReplicas;

 private:
  Fault choose(int process, Time until) override;
  void failover(const Failover& how);
};

/// Slots of locks also move from one master to another.
class TroubleOfCluster final : public TroubleOfReplicas {
 public:
  using TroubleOfReplicas::TroubleOfReplicas;

 private:
  Fault choose(int process, Time until) override;
  void move(const std::string& key, std::size_t to, Time until);
};

}  // namespace lockkeeper::simulation
