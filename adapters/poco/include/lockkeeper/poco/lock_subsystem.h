#pragma once

#include <Poco/Util/Subsystem.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lockkeeper/poco/export.h"
#include "lockkeeper/poco/lock_services.h"

namespace lockkeeper::poco {

/// Locks and limits of a Poco application, from lockkeeper.* in its configuration. Add it in the
/// application's constructor, with the drivers that the program links, each in one line:
///
///     StoreRegistry stores;
///     redis::use(stores);
///     addSubsystem(new poco::LockSubsystem(stores));
///
/// They exist from Application::initialize() to Application::uninitialize(). So call loadConfiguration()
/// before initialize(), which throws ConfigError; uninitialize() blocks as the destructor of LockServices
/// does. In between, the subsystem is thread-safe. It also works in a daemon, which forks before
/// initialize().
///
/// Adds the option --help-lockkeeper, which prints all settings with their defaults and ends the program.
class LOCKKEEPER_POCO_EXPORT LockSubsystem : public Poco::Util::Subsystem {
 public:
  /// Connects nowhere, and reads no setting yet.
  explicit LockSubsystem(StoreRegistry stores, Environment environment = loggingEnvironment());
  ~LockSubsystem() override;

  /// For Poco: "lockkeeper".
  const char* name() const override { return "lockkeeper"; }

  /// As in LockServices. What they return is destroyed by uninitialize() and reinitialize(). These functions
  /// and all below throw std::logic_error while the subsystem is not initialized.
  LockManager& locks() const { return services().locks(); }
  /// LockServices::sharedLocks().
  const std::shared_ptr<LockManager>& sharedLocks() const { return services().sharedLocks(); }
  /// LockServices::limits().
  RateLimiter& limits() const { return services().limits(); }
  /// LockServices::sharedLimits().
  const std::shared_ptr<RateLimiter>& sharedLimits() const { return services().sharedLimits(); }
  /// LockServices::sharedAnswers().
  const std::shared_ptr<ValueStore>& sharedAnswers() const { return services().sharedAnswers(); }
  /// LockServices::healthParts().
  HealthParts healthParts() const { return services().healthParts(); }
  /// LockServices::policy().
  const RatePolicy& policy(std::string_view limit) const { return services().policy(limit); }
  /// LockServices::livePolicy().
  LivePolicy livePolicy(std::string_view limit) const { return services().livePolicy(limit); }
  /// LockServices::follow().
  template <class Filter>
  void follow(const Filter& filter) const {
    services().follow(filter);
  }
  /// LockServices::task().
  const TaskOptions& task(std::string_view name) const { return services().task(name); }
  /// LockServices::schedule().
  [[nodiscard]] ScheduledTask schedule(std::string_view name, ExclusiveTask::Work work) const {
    return services().schedule(name, std::move(work));
  }
  /// LockServices::reload().
  void reload(const Settings& settings);

 protected:
  /// Called by Poco: reads the configuration. Throws what readSettings() and LockServices() throw.
  void initialize(Poco::Util::Application& application) override;
  /// Called by Poco: ends the services.
  void uninitialize() override;
  /// If the new configuration is wrong, throws and keeps the old one.
  void reinitialize(Poco::Util::Application& application) override;
  /// Called by Poco: adds --help-lockkeeper.
  void defineOptions(Poco::Util::OptionSet& options) override;

 private:
  const LockServices& services() const;
  void showSettings(const std::string& option, const std::string& value);

  const StoreRegistry stores_;
  const Environment environment_;
  std::optional<LockServices> services_;
};

}  // namespace lockkeeper::poco
