// A server as an application writes it: what it locks and limits with is in its configuration alone.

#include <Poco/Util/Option.h>
#include <Poco/Util/OptionSet.h>
#include <Poco/Util/ServerApplication.h>

#include <csignal>
#include <iostream>

#include "lockkeeper/poco/lock_subsystem.h"
#include "lockkeeper/redis/use.h"

namespace {

using lockkeeper::poco::LockSubsystem;

class ConfiguredApp final : public Poco::Util::ServerApplication {
 public:
  ConfiguredApp() {
    sigset_t ending;
    ::sigemptyset(&ending);
    ::sigaddset(&ending, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);  // else it might come before anybody waits for it
    lockkeeper::StoreRegistry stores;
    lockkeeper::redis::use(stores);
    addSubsystem(new LockSubsystem(stores));
  }

 private:
  void defineOptions(Poco::Util::OptionSet& options) override {
    ServerApplication::defineOptions(options);
    options.addOption(Poco::Util::Option("config", "", "the configuration").argument("FILE").binding("file"));
  }

  void initialize(Application& self) override {
    loadConfiguration(config().getString("file"));
    ServerApplication::initialize(self);
  }

  int main(const std::vector<std::string>&) override {
    auto& lockkeeper = getSubsystem<LockSubsystem>();
    const auto order = lockkeeper.locks().lock("order:42");
    std::cout << (lockkeeper.locks().tryLock("order:42") ? "sold twice" : "sold once") << '\n';
    for (int i = 0; i < 3; ++i) {
      std::cout << (lockkeeper.limits().take("+49", lockkeeper.policy("sms")) ? "sent" : "refused") << '\n';
    }
    std::cout << "ready" << std::endl;
    waitForTerminationRequest();
    return EXIT_OK;
  }
};

}  // namespace

POCO_SERVER_MAIN(ConfiguredApp)
