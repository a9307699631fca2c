#include "lockkeeper/poco/lock_subsystem.h"

#include <Poco/Util/Application.h>
#include <Poco/Util/Option.h>
#include <Poco/Util/OptionCallback.h>
#include <Poco/Util/OptionSet.h>

#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "config/setting_list.h"

namespace lockkeeper::poco {

LockSubsystem::LockSubsystem(StoreRegistry stores, Environment environment)
    : stores_(std::move(stores)), environment_(std::move(environment)) {}

LockSubsystem::~LockSubsystem() = default;

void LockSubsystem::initialize(Poco::Util::Application& application) {
  services_.emplace(fromConfiguration(application.config(), stores_, environment_));
}

void LockSubsystem::reload(const Settings& settings) {
  static_cast<void>(services());  // throws when there are none
  services_->reload(settings);
}

void LockSubsystem::uninitialize() { services_.reset(); }

void LockSubsystem::reinitialize(Poco::Util::Application& application) { initialize(application); }

void LockSubsystem::defineOptions(Poco::Util::OptionSet& options) {
  options.addOption(
      Poco::Util::Option("help-lockkeeper", "", "list the settings of locks and limits, and exit")
          .callback(Poco::Util::OptionCallback<LockSubsystem>(this, &LockSubsystem::showSettings)));
}

// Options are read before anything is initialized, so that there is nothing else to end.
void LockSubsystem::showSettings(const std::string&, const std::string&) {
  printSettings(std::cout);
  std::exit(EXIT_SUCCESS);
}

const LockServices& LockSubsystem::services() const {
  if (services_) return *services_;
  throw std::logic_error(
      "the LockSubsystem is not initialized: use it between the application's initialize() and "
      "uninitialize()");
}

}  // namespace lockkeeper::poco
