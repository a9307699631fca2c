#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "lockkeeper/exclusive_task.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/migration/migration_options.h"
#include "lockkeeper/poco/export.h"
#include "lockkeeper/poco/idempotency.h"
#include "lockkeeper/poco/rate_limit_filter.h"
#include "lockkeeper/poco/request_locks.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/rate_policy.h"
#include "lockkeeper/schedule/scheduled_task.h"

namespace Poco::Util {
class AbstractConfiguration;
}

namespace lockkeeper::poco {

/// A migration to Settings::store.
struct MigrationSettings {
  std::string from{};  ///< Empty: there is none. May hold a password: not for messages.
  /// Where the migration's state is kept; empty: in the new store. May hold a password: not for messages.
  std::string stateStore{};
  migration::MigrationOptions options{};
};

/// When a task runs: either `cron` or `every`.
struct TaskSchedule {
  std::string cron{};           ///< Empty: not set.
  std::string timeZone{"UTC"};  ///< Of `cron`.
  std::optional<std::chrono::milliseconds> every{};
  ScheduleOptions options{};
};

/// What stands in `lockkeeper.http`. A filter's own `fromConfiguration()` adds what it takes from elsewhere:
/// `clients`, the namespace, the limits.
struct HttpSettings {
  RateLimitOptions limits{};
  RequestLockOptions locks{};
  IdempotencyOptions idempotency{};
  ClientOptions clients{};
  std::string answersStore{};  ///< Empty: none. May hold a password: not for messages.
};

/// What a configuration says in `lockkeeper.*`; docs/configuration.md lists all of it. A value.
struct LOCKKEEPER_POCO_EXPORT Settings {
  std::string store{};  ///< Empty: not set. May hold a password: not for messages.
  ManagerOptions manager{};
  std::string limiterStore{};  ///< Empty: `store`.
  RateLimiterOptions limiter{};
  /// By the limit's name, as RatePolicy::parse() reads them.
  std::map<std::string, std::map<std::string, std::string>> limits{};
  /// By the task's name, which is also in TaskOptions::name.
  std::map<std::string, TaskOptions, std::less<>> tasks{};
  /// Of the tasks that have one.
  std::map<std::string, TaskSchedule, std::less<>> schedules{};
  MigrationSettings migration{};
  HttpSettings http{};

  /// Throws ConfigError that names the first limit that is not one.
  std::map<std::string, RatePolicy, std::less<>> policies() const;
};

/// Reads all of lockkeeper.* and opens nothing. References like ${name} to other settings are followed; an
/// empty value counts as not set. Throws ConfigError that names the first setting that is unknown, and the
/// known one that is nearest, or the first value that cannot be read or is out of its range in
/// lockkeeper.lock or lockkeeper.migration. Other ranges, and what must fit together, are checked by whoever
/// uses the settings.
LOCKKEEPER_POCO_EXPORT Settings readSettings(const Poco::Util::AbstractConfiguration& configuration);

}  // namespace lockkeeper::poco
