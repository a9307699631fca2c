// A flash sale over HTTP, without and with lockkeeper. See README.md beside it.

#include <Poco/File.h>
#include <Poco/TemporaryFile.h>
#include <Poco/Util/Application.h>
#include <Poco/Util/HelpFormatter.h>
#include <Poco/Util/OptionCallback.h>
#include <Poco/Util/OptionException.h>

#include <iostream>
#include <memory>

#include "lockkeeper/error.h"
#include "lockkeeper/key.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "modes.h"
#include "settings.h"

namespace flash_sale {
namespace {

using Poco::Util::Option;

class FlashSale final : public Poco::Util::Application {
 protected:
  void defineOptions(Poco::Util::OptionSet& options) override {
    Application::defineOptions(options);
    options.addOption(Option("help", "h", "show this")
                          .callback(Poco::Util::OptionCallback<FlashSale>(this, &FlashSale::onHelp)));
    options.addOption(
        Option("config", "", "settings file instead of flash_sale.properties beside the program")
            .argument("FILE")
            .callback(Poco::Util::OptionCallback<FlashSale>(this, &FlashSale::onConfig)));
    options.addOption(Option("serve", "", "only run the HTTP server")
                          .callback(Poco::Util::OptionCallback<FlashSale>(this, &FlashSale::onServe)));
    const auto setting = [&](const char* name, const char* text, const char* argument, const char* key) {
      options.addOption(Option(name, "", text).argument(argument).binding(key));
    };
    setting("store", "where the locks are: memory: or redis://…", "URI", "lockkeeper.store");
    setting("database", "where the stock is: sqlite:/path or mysql://…", "URI", "flashSale.database");
    setting("stock", "how many there are", "N", "flashSale.stock");
    setting("orders", "how many are ordered, one each", "N", "flashSale.orders");
    setting("customers", "how many order at once", "N", "flashSale.customers");
    setting("port", "with --serve: the port", "N", "flashSale.port");
    setting("way", "with --serve: lockOnly, fencedRow, conditionalUpdate, optimistic or lockedOptimistic",
            "WAY", "flashSale.way");
  }

  // Catches all: Poco's run() would log it and answer with one code for everything.
  int main(const std::vector<std::string>& arguments) override {
    try {
      return help_ ? showHelp() : sell(arguments);
    } catch (...) {
      return report();
    }
  }

 public:
  /// Says on stderr, in one line, what exception is being handled; returns the exit code for it.
  static int report() {
    const auto fail = [](const std::string& message, int code) {
      std::cerr << "flash_sale: " << message << '\n';
      return code;
    };
    try {
      throw;
    } catch (const Poco::Util::OptionException& error) {
      return fail(error.displayText() + " (--help shows the options)", EXIT_USAGE);
    } catch (const lockkeeper::ConfigError& error) {
      return fail(error.what(), EXIT_CONFIG);
    } catch (const lockkeeper::StoreUnavailable& error) {
      return fail(error.what(), EXIT_UNAVAILABLE);
    } catch (const Poco::Exception& error) {
      return fail(error.displayText(), EXIT_SOFTWARE);
    } catch (const std::exception& error) {
      return fail(error.what(), EXIT_SOFTWARE);
    }
  }

 private:
  void onHelp(const std::string&, const std::string&) {
    help_ = true;
    stopOptionsProcessing();
  }
  void onConfig(const std::string&, const std::string& file) { configFile_ = file; }
  void onServe(const std::string&, const std::string&) { serve_ = true; }

  int showHelp() const {
    Poco::Util::HelpFormatter help(options());
    help.setCommand("flash_sale");
    help.setUsage("[OPTION…]");
    help.setHeader("Sells a flash sale over HTTP, without a lock and with one, and compares.");
    help.format(std::cout);
    return EXIT_OK;
  }

  int sell(const std::vector<std::string>& arguments) {
    if (!arguments.empty()) throw Poco::Util::UnknownOptionException(arguments.front());
    loadSettings();
    const Settings settings = Settings::read(config());
    Poco::TemporaryFile folder;
    std::string database = settings.database;
    if (database.empty()) {
      folder.createDirectories();
      database = "sqlite:" + folder.path() + "/flash_sale.db";
    }
    lockkeeper::StoreRegistry registry;
    lockkeeper::redis::use(registry);
    lockkeeper::ManagerOptions managing;
    managing.keyNamespace = settings.keyNamespace;
    lockkeeper::LockManager locks(registry.open(settings.store), managing);
    return serve_ ? serve(settings, database, locks) : demonstrate(settings, database, locks);
  }

  void loadSettings() {
    if (configFile_.empty()) {
      loadConfiguration();
    } else if (Poco::File(configFile_).exists()) {
      loadConfiguration(configFile_);
    } else {
      throw lockkeeper::ConfigError("there is no settings file " + lockkeeper::quoted(configFile_));
    }
  }

  std::string configFile_;
  bool help_ = false;
  bool serve_ = false;
};

int runApplication(int argc, char** argv) {
  Poco::AutoPtr<FlashSale> application = new FlashSale;
  try {
    application->init(argc, argv);
  } catch (...) {
    return FlashSale::report();
  }
  return application->run();
}

}  // namespace
}  // namespace flash_sale

int main(int argc, char** argv) { return flash_sale::runApplication(argc, argv); }
