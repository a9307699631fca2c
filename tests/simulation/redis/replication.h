#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "simulation/machine/chance.h"
#include "simulation/machine/scheduler.h"
#include "simulation/redis/keyspace.h"

namespace lockkeeper::simulation {

/// How what one server writes gets to its replicas: later, and in its order. Each time a replica gets a copy
/// of all keys, whose ends are those of the master's clock.
class Replication {
 public:
  /// `changed` is called when more has been acknowledged, and when the server has another role.
  Replication(Scheduler& scheduler, Keyspace& keys, const Chance& chance, std::function<void()> changed)
      : scheduler_(scheduler), keys_(keys), chance_(chance), changed_(std::move(changed)) {}

  /// Becomes a replica of `master`, and soon has what that has; a master when it is null.
  void follow(Replication* master);
  bool isReplica() const noexcept { return link_ != nullptr; }
  std::size_t replicas() const noexcept { return replicas_.size(); }

  /// Its replicas, if it has any, get what has been written so far.
  void wrote();
  /// How much has been written; of a replica, how much of it has come.
  std::int64_t offset() const noexcept { return offset_; }
  /// How many replicas have said that they have so much.
  std::size_t having(std::int64_t offset) const noexcept;

  /// Nothing gets to its replicas until then.
  void hold(Time until) noexcept { heldUntil_ = until; }
  /// Nothing gets to its present replicas any more.
  void cutOff();

 private:
  struct Link {
    Replication& master;
    Replication& replica;
    bool open = true;
    Time last = 0;                   // what is on its way arrives after that
    std::int64_t acknowledged = -1;  // nothing yet
  };

  void send(const std::shared_ptr<Link>& link, Time slowest);

  Scheduler& scheduler_;
  Keyspace& keys_;
  Chance chance_;
  const std::function<void()> changed_;
  std::shared_ptr<Link> link_;  // to the master; null for a master
  std::vector<std::shared_ptr<Link>> replicas_;
  std::int64_t offset_ = 0;
  Time heldUntil_ = 0;
};

}  // namespace lockkeeper::simulation
