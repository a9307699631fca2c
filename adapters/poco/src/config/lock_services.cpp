#include "lockkeeper/poco/lock_services.h"

#include <Poco/Logger.h>

#include <algorithm>
#include <array>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "config/setting_value.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/migration/open.h"
#include "lockkeeper/poco/logging_listener.h"
#include "text/edit_distance.h"

namespace lockkeeper::poco {
namespace {

constexpr std::array<std::pair<std::string_view, const char*>, 11> ownSchemes{{{"redis", "redis"},
                                                                               {"rediss", "redis"},
                                                                               {"redis+unix", "redis"},
                                                                               {"redis+sentinel", "redis"},
                                                                               {"redis+cluster", "redis"},
                                                                               {"redis+legacy", "redis"},
                                                                               {"redlock", "redis"},
                                                                               {"mysql+getlock", "mysql"},
                                                                               {"mysql+version", "mysql"},
                                                                               {"etcd", "etcd"},
                                                                               {"etcds", "etcd"}}};

/// Throws ConfigError unless `stores` can open it.
void checkStore(const std::string& setting, const std::string& uri, const StoreRegistry& stores) {
  const std::string scheme = asConfigured(setting + ": ", [&] { return StoreUri::parse(uri).scheme(); });
  const auto* own = std::ranges::find(ownSchemes, scheme, [](const auto& entry) { return entry.first; });
  if (stores.knows(scheme) || own == ownSchemes.end()) return;
  const std::string component = own->second;
  throw ConfigError(setting + ": this program has no driver for the scheme " + quoted(scheme) +
                    ": link lockkeeper::" + component + " and call lockkeeper::" + component +
                    "::use(stores)");
}

std::shared_ptr<LockDriver> openStore(const std::string& setting, const std::string& uri,
                                      const StoreRegistry& stores, const Environment& environment) {
  checkStore(setting, uri, stores);
  return asConfigured(setting + ": ", [&] { return stores.open(uri, environment); });
}

/// Throws ConfigError that says `what` is too long for a migration with that maxTtl.
void checkLease(const std::string& what, std::chrono::milliseconds lease, std::chrono::milliseconds maxTtl) {
  if (lease <= maxTtl) return;
  throw ConfigError(what + " is " + formatDuration(lease) +
                    ": during a migration at most lockkeeper.migration.maxTtl, " + formatDuration(maxTtl) +
                    ", is allowed");
}

std::shared_ptr<LockDriver> openMigration(const Settings& settings, const StoreRegistry& stores,
                                          const Environment& environment) {
  const MigrationSettings& migration = settings.migration;
  checkStore("lockkeeper.store", settings.store, stores);
  checkStore("lockkeeper.migration.from", migration.from, stores);
  if (!migration.stateStore.empty())
    checkStore("lockkeeper.migration.stateStore", migration.stateStore, stores);
  checkLease("lockkeeper.lock.ttl", settings.manager.lock.ttl.value_or(LockOptions::defaultTtl),
             migration.options.maxTtl);
  return asConfigured("lockkeeper.migration: ", [&] {
    return migration::open(stores, {migration.from, settings.store, migration.stateStore}, migration.options,
                           environment);
  });
}

/// What a ScheduledTask is made of.
struct Planned {
  Schedule schedule;
  ScheduleOptions options;
};

/// Throws ConfigError that names the setting which is wrong or missing.
Planned planned(const std::string& task, const TaskSchedule& given) {
  if (given.cron.empty() && !given.every) {
    throw ConfigError(task +
                      ".cron is missing: timeZone, missed and clockSkew are for tasks with cron or every");
  }
  asConfigured(task + ": ", [&] { checkOptions(given.options); });
  if (given.every) {
    const std::string setting = task + ".every is " + formatDuration(*given.every);
    if (!given.cron.empty()) throw ConfigError(setting + " beside " + task + ".cron: one of them is allowed");
    if (given.timeZone != TaskSchedule{}.timeZone) {
      throw ConfigError(setting + " beside " + task + ".timeZone, which is for cron: every counts in UTC");
    }
    return {asConfigured(task + ".every: ", [&] { return Schedule::every(*given.every); }), given.options};
  }
  TimeZone zone = asConfigured(task + ".timeZone: ", [&] { return TimeZone::named(given.timeZone); });
  return {asConfigured(task + ".cron: ", [&] { return Schedule::cron(given.cron, std::move(zone)); }),
          given.options};
}

/// The one of that name. Throws ConfigError that names its `setting`, and the nearest one that there is.
template <class Named>
const Named& oneOf(const std::map<std::string, Named, std::less<>>& all, const std::string& section,
                   std::string_view name, const std::string& setting, const std::string& kind) {
  if (const auto found = all.find(name); found != all.end()) return found->second;
  const std::string missing = section + "." + std::string(name) + "." + setting + " is missing";
  if (all.empty()) throw ConfigError(missing + ": no " + kind + " is configured");
  const auto nearest =
      std::ranges::min_element(all, {}, [&](const auto& entry) { return editDistance(name, entry.first); });
  throw ConfigError(missing + ": did you mean the " + kind + " " + quoted(nearest->first) + "?");
}

}  // namespace

Environment loggingEnvironment() {
  Environment environment;
  environment.listener = std::make_shared<LoggingListener>(Poco::Logger::get("lockkeeper"));
  return environment;
}

/// What reload() replaces. What it has replaced stays, since references to it were given out.
struct LockServices::Live {
  struct Generation {
    std::map<std::string, RatePolicy, std::less<>> policies;
    std::map<std::string, TaskOptions, std::less<>> tasks;
    std::map<std::string, Planned, std::less<>> schedules{};
  };

  const Generation& latest() {
    const std::lock_guard guard(mutex);
    return generations.back();
  }

  /// Throws ConfigError that names what is wrong or missing.
  void check(const Generation& fresh) const {
    for (const auto& each : fresh.tasks) {
      const std::string task = "lockkeeper.tasks." + each.first;
      asConfigured(task + ": ", [&] { checkOptions(each.second); });
      if (maxTtl) checkLease("the lease of " + task, leaseOf(each.second), *maxTtl);
    }
    for (const auto& [name, plan] : fresh.schedules) {
      const std::string task = "lockkeeper.tasks." + name;
      if (!fresh.tasks.contains(name)) throw ConfigError(task + " has a schedule, but is no task");
      if (maxTtl) {
        checkLease("the lease of each tick of " + task, leaseOf(plan.schedule, plan.options), *maxTtl);
      }
    }
  }

  std::optional<std::chrono::milliseconds> maxTtl{};  // of the migration, if there is one; does not change
  std::mutex mutex;
  std::list<Generation> generations;
};

LockServices::LockServices(const Settings& settings, const StoreRegistry& stores,
                           const Environment& environment)
    : live_(std::make_shared<Live>()) {
  if (!settings.migration.from.empty()) live_->maxTtl = settings.migration.options.maxTtl;
  reload(settings);
  if (settings.store.empty()) {
    throw ConfigError(
        "lockkeeper.store is missing, such as lockkeeper.store = redis://host:6379/0; memory: is for one "
        "process alone");
  }
  auto driver = settings.migration.from.empty()
                    ? openStore("lockkeeper.store", settings.store, stores, environment)
                    : openMigration(settings, stores, environment);
  ManagerOptions manager = settings.manager;
  manager.environment = environment;
  locks_ = asConfigured("lockkeeper.lock: ", [&] { return std::make_shared<LockManager>(driver, manager); });

  const HttpSettings& http = settings.http;
  if (!http.answersStore.empty() || !http.idempotency.routes.empty()) {
    const bool own = !http.answersStore.empty();
    const std::string setting = own ? "lockkeeper.http.idempotency.store" : "lockkeeper.store";
    const std::string& uri = own ? http.answersStore : settings.store;
    checkStore(setting, uri, stores);
    answers_ = asConfigured(setting + ": ", [&] { return stores.openValues(uri, environment); });
  }

  const bool elsewhere = !settings.limiterStore.empty();
  const std::string setting = elsewhere ? "lockkeeper.limiter.store" : "lockkeeper.store";
  const std::string& uri = elsewhere ? settings.limiterStore : settings.store;
  auto rates = capability<RateDriver>(openStore(setting, uri, stores, environment));
  if (rates == nullptr) {
    noLimits_ = setting + ": the store " + StoreUri::parse(uri).display() +
                " keeps no rate limits: name one that does in lockkeeper.limiter.store";
    if (elsewhere || !settings.limits.empty()) throw ConfigError(noLimits_);
    return;
  }
  RateLimiterOptions limiter = settings.limiter;
  limiter.environment = environment;
  limits_ =
      asConfigured("lockkeeper.limiter: ", [&] { return std::make_shared<RateLimiter>(rates, limiter); });
}

const std::shared_ptr<RateLimiter>& LockServices::sharedLimits() const {
  if (limits_ == nullptr) throw ConfigError(noLimits_);
  return limits_;
}

const std::shared_ptr<ValueStore>& LockServices::sharedAnswers() const {
  if (answers_ == nullptr) {
    throw ConfigError(
        "no route is configured below lockkeeper.http.idempotency.routes, whose answers are kept");
  }
  return answers_;
}

void LockServices::reload(const Settings& settings) {
  Live::Generation fresh{settings.policies(), settings.tasks};
  for (const auto& [name, given] : settings.schedules) {
    fresh.schedules.emplace(name, planned("lockkeeper.tasks." + name, given));
  }
  live_->check(fresh);
  const std::lock_guard guard(live_->mutex);
  live_->generations.push_back(std::move(fresh));
}

const RatePolicy& LockServices::policy(std::string_view name) const {
  return oneOf(live_->latest().policies, "lockkeeper.limits", name, "rate", "limit");
}

const TaskOptions& LockServices::task(std::string_view name) const {
  return oneOf(live_->latest().tasks, "lockkeeper.tasks", name, "atMost", "task");
}

ScheduledTask LockServices::schedule(std::string_view name, ExclusiveTask::Work work) const {
  const Live::Generation& latest = live_->latest();
  const Planned& plan = oneOf(latest.schedules, "lockkeeper.tasks", name, "cron", "task");
  const TaskOptions& options = latest.tasks.find(name)->second;
  return {std::make_shared<ExclusiveTask>(locks_, options, std::move(work)), plan.schedule, plan.options};
}

LockServices fromConfiguration(const Poco::Util::AbstractConfiguration& configuration,
                               const StoreRegistry& stores, const Environment& environment) {
  return LockServices(readSettings(configuration), stores, environment);
}

}  // namespace lockkeeper::poco
