#include "lockkeeper/poco/lock_services.h"

#include <Poco/Logger.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "config/setting_value.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/edit_distance.h"
#include "lockkeeper/migration/open.h"
#include "lockkeeper/poco/logging_listener.h"

namespace lockkeeper::poco {
namespace {

constexpr std::array<std::pair<std::string_view, const char*>, 12> ownSchemes{
    {{"redis", "redis"},
     {"rediss", "redis"},
     {"redis+unix", "redis"},
     {"redis+sentinel", "redis"},
     {"redis+cluster", "redis"},
     {"redis+legacy", "redis"},
     {"redlock", "redis"},
     {"mysql+getlock", "mysql"},
     {"mysql+version", "mysql"},
     {"postgres+version", "postgres"},
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

/// The same for the routes that take locks.
void checkLeases(const HttpSettings& http, std::chrono::milliseconds maxTtl) {
  for (const LockedRoute& route : http.locks.routes) {
    // Without one it is the manager's, which does not change.
    if (route.lock.ttl) checkLease("lockkeeper.http.locks." + route.name + ".ttl", *route.lock.ttl, maxTtl);
  }
  for (const IdempotentRoute& route : http.idempotency.routes) {
    checkLease("lockkeeper.http.idempotency.routes." + route.name + ".ttl", route.ttl, maxTtl);
  }
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
  /// Puts something in place that was checked; does not throw.
  using Commit = std::function<void()>;

  struct Follower {
    std::weak_ptr<const void> filter;
    std::function<Commit(const Settings&)> prepare;  // throws ConfigError; empty when the filter has ended
  };

  struct Generation {
    std::map<std::string, RatePolicy, std::less<>> policies;
    std::map<std::string, TaskOptions, std::less<>> tasks;
    std::map<std::string, Planned, std::less<>> schedules{};
  };

  static const RatePolicy& policyOf(const Generation& generation, std::string_view name) {
    return oneOf(generation.policies, "lockkeeper.limits", name, "rate", "limit");
  }

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

  /// Throws ConfigError when a limit that somebody keeps is not among them.
  void checkHeld(const Generation& fresh) const {
    for (const auto& each : held) (void)policyOf(fresh, each.first);
  }

  void forgetEnded() {
    std::erase_if(followers, [](const Follower& each) { return each.filter.expired(); });
  }

  std::optional<std::chrono::milliseconds> maxTtl{};  // of the migration, if there is one; does not change
  std::mutex reloading;  // one reload, or one that begins to follow, after the other; of the next two
  Settings settings;     // that were read last
  std::vector<Follower> followers;
  std::mutex mutex;  // of all below
  std::list<Generation> generations;
  std::map<std::string, std::atomic<const RatePolicy*>, std::less<>> held;  // by each LivePolicy
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
  const std::string answers = "lockkeeper.http.idempotency.store";
  if (!http.answersStore.empty()) {
    checkStore(answers, http.answersStore, stores);
    answers_ =
        asConfigured(answers + ": ", [&] { return stores.openValues(http.answersStore, environment); });
  } else if (!http.idempotency.routes.empty()) {
    throw ConfigError(
        answers +
        " is missing, such as redis://host:6379/0: answers stay for long, and a store that they "
        "fill takes no locks. If they may share the store of the locks, write ${lockkeeper.store}");
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
    throw ConfigError("lockkeeper.http.idempotency.store is missing, where answers are kept");
  }
  return answers_;
}

void LockServices::reload(const Settings& settings) {
  Live::Generation fresh{settings.policies(), settings.tasks};
  for (const auto& [name, given] : settings.schedules) {
    fresh.schedules.emplace(name, planned("lockkeeper.tasks." + name, given));
  }
  live_->check(fresh);
  if (live_->maxTtl) checkLeases(settings.http, *live_->maxTtl);

  Settings kept = settings;
  // Ends after the locks: with it end hooks of the program, and filters.
  std::vector<Live::Commit> commits;
  const std::lock_guard reloading(live_->reloading);
  live_->forgetEnded();
  for (const Live::Follower& each : live_->followers) {
    if (Live::Commit commit = each.prepare(settings)) commits.push_back(std::move(commit));
  }

  const std::lock_guard guard(live_->mutex);
  live_->checkHeld(fresh);
  const Live::Generation& latest = live_->generations.emplace_back(std::move(fresh));
  for (auto& [name, now] : live_->held) now.store(&Live::policyOf(latest, name), std::memory_order_release);
  for (const Live::Commit& commit : commits) commit();
  std::swap(live_->settings, kept);
}

template <class Options>
void LockServices::followWith(const HttpFilter<Options>& filter) const {
  const std::weak_ptr followed = filter.state_;
  Live::Follower follower{followed, [followed](const Settings& settings) -> Live::Commit {
                            const auto state = followed.lock();
                            if (!state) return nullptr;
                            // The filter checks again, with the hooks that it has.
                            return asConfigured(
                                "", [&] { return state->prepare(Options::fromSettings(settings)); });
                          }};
  Live::Commit commit;  // ends after the lock, as in reload()
  const std::lock_guard reloading(live_->reloading);
  // The filter may have been made before the last reload.
  commit = follower.prepare(live_->settings);
  live_->forgetEnded();
  live_->followers.push_back(std::move(follower));
  commit();
}

void LockServices::follow(const HttpFilter<RateLimitOptions>& filter) const { followWith(filter); }
void LockServices::follow(const HttpFilter<RequestLockOptions>& filter) const { followWith(filter); }
void LockServices::follow(const HttpFilter<IdempotencyOptions>& filter) const { followWith(filter); }

const RatePolicy& LockServices::policy(std::string_view name) const {
  return Live::policyOf(live_->latest(), name);
}

LivePolicy LockServices::livePolicy(std::string_view name) const {
  const std::lock_guard guard(live_->mutex);
  const RatePolicy& policy = Live::policyOf(live_->generations.back(), name);
  const auto held = live_->held.try_emplace(std::string(name), &policy).first;
  return LivePolicy(LivePolicy::Now(live_, &held->second));
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
