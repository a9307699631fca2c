#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "lockkeeper/environment.h"
#include "lockkeeper/exclusive_task.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/poco/export.h"
#include "lockkeeper/poco/health_handler.h"
#include "lockkeeper/poco/http_filter.h"
#include "lockkeeper/poco/settings.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/rate_policy.h"
#include "lockkeeper/schedule/scheduled_task.h"
#include "lockkeeper/store/value_store.h"
#include "lockkeeper/store_registry.h"

/// Locks and limits for applications and servers that are built on Poco.
namespace lockkeeper::poco {

/// The system's clock and random numbers, and a LoggingListener that writes to Poco::Logger "lockkeeper", for
/// example why a store does not answer.
LOCKKEEPER_POCO_EXPORT Environment loggingEnvironment();

/// A limit of a configuration that follows LockServices::reload(), for objects that keep it:
///
///     const LivePolicy sms = services.livePolicy("sms");
///     services.limits().take(user, sms);
///
/// A value: its copies follow the same limit. Thread-safe, and never blocks.
class LivePolicy {
 public:
  /// What the limit allows now. The returned policy does not change, but the next call may return another
  /// one. It lives as long as this object, a copy of it or the LockServices.
  const RatePolicy& now() const noexcept { return *now_->load(std::memory_order_acquire); }

  /// now(), for the functions of RateLimiter.
  operator const RatePolicy&() const noexcept { return now(); }  // NOLINT(google-explicit-constructor)

 private:
  friend class LockServices;

  using Now = std::shared_ptr<const std::atomic<const RatePolicy*>>;

  explicit LivePolicy(Now now) noexcept : now_(std::move(now)) {}

  Now now_;
};

/// Locks and limits according to the settings: the manager, on a migration between two stores if one is
/// configured; the limiter and its policies; and how tasks run. Thread-safe.
///
/// The destructor ends them, and blocks for at most one operation and one I/O timeout of each store. Locks
/// that are still held stay held until they are released.
class LOCKKEEPER_POCO_EXPORT LockServices {
 public:
  /// Connects nowhere yet: the first operation does. Throws ConfigError that names the setting and, for a
  /// scheme that is missing in `stores`, the CMake target to link if that is one of lockkeeper's own.
  LockServices(const Settings& settings, const StoreRegistry& stores,
               const Environment& environment = loggingEnvironment());

  /// Takes locks as lockkeeper.lock says: `locks().tryLock("order:42")`.
  LockManager& locks() const { return *locks_; }

  /// The same, for objects that keep it, such as ExclusiveTask and RequestLocks.
  const std::shared_ptr<LockManager>& sharedLocks() const { return locks_; }

  /// `limits().take(user, policy("sms"))`. Throws ConfigError when the store keeps no rate limits.
  RateLimiter& limits() const { return *sharedLimits(); }

  /// The same, for objects that keep it, such as RateLimitFilter.
  const std::shared_ptr<RateLimiter>& sharedLimits() const;

  /// Where Idempotency keeps answers: `lockkeeper.http.idempotency.store`. Throws ConfigError when that is
  /// not set.
  const std::shared_ptr<ValueStore>& sharedAnswers() const;

  /// The parts that the settings configure, for serveHealth().
  HealthParts healthParts() const { return {locks_, limits_, answers_}; }

  /// Takes over the limits, the tasks and the HTTP filters of other settings: from now on, policy() and
  /// task() return the new ones, each LivePolicy has its new limit, and filters that follow() have their new
  /// options. Stores, locks and running tasks stay as they are, and what is used of a limit stays used.
  /// Throws ConfigError that names the fault, also if a limit that has a LivePolicy is missing; then nothing
  /// changes.
  void reload(const Settings& settings);

  /// Gives `filter`, which was made from the same configuration, the latest options, now and with each
  /// reload(). Its hooks stay. It may be destroyed before this object. Throws ConfigError as reload() does,
  /// and then the filter does not follow.
  /// @{
  void follow(const HttpFilter<RateLimitOptions>& filter) const;
  void follow(const HttpFilter<RequestLockOptions>& filter) const;
  void follow(const HttpFilter<IdempotencyOptions>& filter) const;
  /// @}

  /// The limit `lockkeeper.limits.NAME` of the latest settings. Lives as long as this object. Throws
  /// ConfigError that names the most similar one if there is none of that name.
  const RatePolicy& policy(std::string_view name) const;

  /// The same for objects that keep it: it follows each reload(), whose settings must then contain a limit of
  /// that name. Throws as policy() does.
  LivePolicy livePolicy(std::string_view name) const;

  /// `lockkeeper.tasks.NAME`, for an ExclusiveTask. Lives as long as this object. Throws ConfigError that
  /// names the most similar one if there is none of that name.
  const TaskOptions& task(std::string_view name) const;

  /// From now on, runs `work` by the schedule of `lockkeeper.tasks.NAME` (`cron` or `every`), until the
  /// result is destroyed; reload() does not change it. Throws ConfigError that names the most similar one if
  /// no task of that name has a schedule, and std::invalid_argument for empty work.
  [[nodiscard]] ScheduledTask schedule(std::string_view name, ExclusiveTask::Work work) const;

 private:
  struct Live;

  template <class Options>
  void followWith(const HttpFilter<Options>& filter) const;

  std::shared_ptr<Live> live_;
  std::shared_ptr<LockManager> locks_;
  std::shared_ptr<RateLimiter> limits_;
  std::shared_ptr<ValueStore> answers_;
  std::string noLimits_;  // why limits_ is null
};

/// LockServices from lockkeeper.* of a configuration, for programs that are no Poco::Util::Application.
/// Throws what readSettings() and LockServices() throw.
LOCKKEEPER_POCO_EXPORT LockServices fromConfiguration(const Poco::Util::AbstractConfiguration& configuration,
                                                      const StoreRegistry& stores,
                                                      const Environment& environment = loggingEnvironment());

}  // namespace lockkeeper::poco
