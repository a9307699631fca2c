#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/redis/export.h"
#include "lockkeeper/redis/redlock_options.h"
#include "lockkeeper/store/fence_source.h"
#include "lockkeeper/store/quorum.h"

namespace lockkeeper::redis {

/// Locks by the vote of several independent Redis masters: the Redlock algorithm
/// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/), with the delayed restart that it
/// demands. A lock is held by the claim that a quorum, more than half of all nodes, keeps under its key, each
/// as RedisDriver does without a fence.
///
/// All nodes are asked at once by the calling thread, which waits for all of them in one poll; threads share
/// one connection to each node. A silent node is asked again when it has answered an earlier request, a node
/// that is down when a new log-in has succeeded; until then it costs nothing, unless no quorum is possible
/// without it. A release that it must get is kept and sent when it is back.
///
/// A mistake in the set-up of a node (credentials, the same server twice) that is found at the first attempt
/// makes every call throw a ConfigError. A node that served before and goes wrong later is only down, and so
/// is a replica.
///
/// Thread-safe. After fork() the child's copy throws ForkedError and touches no socket; destroying it leaks
/// it on purpose.
class LOCKKEEPER_REDIS_EXPORT RedlockDriver final : public LockDriver, public Breakable, public Quorate {
 public:
  /// Connects nowhere yet. Grants carry a fence if, and only if, there are `fences`. Throws as
  /// RedlockOptions::check(), and ConfigError for a CA file that cannot be used.
  explicit RedlockDriver(RedlockOptions options, Environment environment = {},
                         std::shared_ptr<FenceSource> fences = nullptr);
  RedlockDriver(const RedlockDriver&) = delete;
  RedlockDriver& operator=(const RedlockDriver&) = delete;
  ~RedlockDriver() override;

  /// A claim that no quorum grants is released on all nodes; those that do not answer get the release when
  /// they do. Throws WithdrawalUnknown when a node may get the claim after that, because it has ended the
  /// connection behind the claim; std::invalid_argument for a ttl above restartGuard.
  AcquireResult acquire(const AcquireRequest& request) override;
  /// Gives the key back to nodes that have lost it, provided that a quorum has kept it and that they have not
  /// restarted within restartGuard.
  void renew(std::span<Renewal> renewals, Instant deadline) override;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override;
  /// What a quorum agrees on; empty when none agrees on a holder.
  std::optional<Holder> holder(std::string_view key, Instant deadline) override;
  Promises promises() const override;
  std::string name() const override;
  void* findCapability(const std::type_info& type) noexcept override {
    return capabilityOf<Breakable, Quorate>(*this, type);
  }
  std::string_view whyNot(const std::type_info& type) const noexcept override {
    return type == typeid(Permits) ? "a quorum cannot count permits" : "";
  }

  bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) override;
  std::vector<View> views(std::string_view key, Instant deadline) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::redis
