// A flash sale over HTTP, without and with lockkeeper. See README.md beside it.

#include <Poco/TemporaryFile.h>
#include <sys/resource.h>

#include "lockkeeper/etcd/use.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/poco/lock_services.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "modes.h"
#include "sample_application.h"
#include "settings.h"

namespace flash_sale {
namespace {

/// A connection of each customer is a file, and one more is the server's end of it.
void raiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

class FlashSale final : public samples::SampleApplication {
 public:
  FlashSale()
      : SampleApplication("Sells a flash sale over HTTP, without a lock and with one, and compares.") {}

 private:
  void defineOptions(Poco::Util::OptionSet& options) override {
    SampleApplication::defineOptions(options);
    options.addOption(flag("serve", "only run the HTTP server"));
    for (const auto& option :
         {setting("store", "where the locks are: memory:, redis://…, mysql+version://…", "URI",
                  "lockkeeper.store"),
          setting("database", "where the stock is: sqlite:/path, mysql://… or, with --serve, postgres://…",
                  "URI", "flashSale.database"),
          setting("stock", "how many there are", "N", "flashSale.stock"),
          setting("orders", "how many are ordered, one each", "N", "flashSale.orders"),
          setting("customers", "how many order at once", "N", "flashSale.customers"),
          setting("processes", "how many processes sell", "N", "flashSale.processes"),
          setting("port", "with --serve: the port", "N", "flashSale.port"),
          setting("way", "with --serve: fencedRow, conditionalUpdate, optimistic, lockedOptimistic or noLock",
                  "WAY", "flashSale.way")}) {
      options.addOption(option);
    }
  }

  int work() override {
    raiseFileLimit();
    const samples::Configuration configuration = readConfiguration();
    // All that is lockkeeper's: the drivers, one line each, and the settings lockkeeper.* for the rest.
    lockkeeper::StoreRegistry stores;
    lockkeeper::redis::use(stores);
    lockkeeper::mysql::use(stores);
    lockkeeper::etcd::use(stores);
    const auto services = lockkeeper::poco::fromConfiguration(*configuration, stores);

    Settings settings = Settings::read(*configuration);
    settings.command = argv();
    Poco::TemporaryFile folder;
    if (settings.database.empty()) {
      folder.createDirectories();
      settings.database = "sqlite:" + folder.path() + "/flash_sale.db";
      settings.temporary = true;
    }
    return given("serve") ? serve(settings, services.locks()) : demonstrate(settings, services.locks());
  }
};

}  // namespace
}  // namespace flash_sale

int main(int argc, char** argv) { return flash_sale::FlashSale().start(argc, argv); }
