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
  /// Where the migration's state is kept; empty: in the new store. May contain a password: do not put it into
  /// messages.
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

/// The settings in `lockkeeper.http`. A filter's own `fromConfiguration()` adds what it takes from other
/// settings: `clients`, the namespace, the limits.
struct HttpSettings {
  RateLimitOptions limits{};
  RequestLockOptions locks{};
  IdempotencyOptions idempotency{};
  ClientOptions clients{};
  std::string answersStore{};  ///< Empty: none. May hold a password: not for messages.
};

/// The settings `lockkeeper.*` of a configuration; docs/configuration.md lists them all. A value.
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

/// Reads all of lockkeeper.* and opens nothing. It follows references like ${name} to other settings; an
/// empty value counts as not set. Throws ConfigError that names the first unknown setting and the most
/// similar known one, or the first value that cannot be read or is out of range in lockkeeper.lock or
/// lockkeeper.migration. The objects that use the settings check other ranges and combinations.
LOCKKEEPER_POCO_EXPORT Settings readSettings(const Poco::Util::AbstractConfiguration& configuration);

}  // namespace lockkeeper::poco
