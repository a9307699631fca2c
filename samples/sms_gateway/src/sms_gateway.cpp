// A gateway for short messages with limits on who may send how many. See README.md beside it.

#include <Poco/File.h>
#include <Poco/Util/Application.h>
#include <Poco/Util/HelpFormatter.h>
#include <Poco/Util/LayeredConfiguration.h>
#include <Poco/Util/OptionCallback.h>
#include <Poco/Util/OptionException.h>
#include <Poco/Util/PropertyFileConfiguration.h>

#include <iostream>

#include "lockkeeper/error.h"
#include "lockkeeper/key.h"
#include "serve.h"

namespace sms_gateway {
namespace {

using Poco::Util::Option;

class SmsGateway final : public Poco::Util::Application {
 protected:
  void defineOptions(Poco::Util::OptionSet& options) override {
    Application::defineOptions(options);
    const auto call = [&](const char* name, const char* text,
                          void (SmsGateway::*method)(const std::string&, const std::string&)) {
      return Option(name, "", text).callback(Poco::Util::OptionCallback<SmsGateway>(this, method));
    };
    options.addOption(call("help", "show this", &SmsGateway::onHelp));
    options.addOption(call("config", "settings file instead of sms_gateway.properties beside the program",
                           &SmsGateway::onConfig)
                          .argument("FILE"));
    options.addOption(call("serve", "only take messages", &SmsGateway::onServe));
    options.addOption(call("work", "only send messages", &SmsGateway::onWork));
    const auto setting = [&](const char* name, const char* text, const char* argument, const char* key) {
      options.addOption(Option(name, "", text).argument(argument).binding(key));
    };
    setting("store", "where limits and queue are: memory: or redis://…", "URI", "lockkeeper.store");
    setting("port", "where to listen", "N", "smsGateway.port");
    setting("outbox", "the file that messages are sent to", "FILE", "smsGateway.outbox");
  }

  // Catches all: Poco's run() would log it and answer with one code for everything.
  int main(const std::vector<std::string>& arguments) override {
    try {
      if (help_) return showHelp();
      if (!arguments.empty()) throw Poco::Util::UnknownOptionException(arguments.front());
      findSettings();
      // The command line, and below it the file.
      serve(parts_, layered(), [this] { return layered(); });
      return EXIT_OK;
    } catch (...) {
      return report();
    }
  }

 public:
  /// Says on stderr, in one line, what exception is being handled; returns the exit code for it.
  static int report() {
    const auto fail = [](const std::string& message, int code) {
      std::cerr << "sms_gateway: " << message << '\n';
      return code;
    };
    try {
      throw;
    } catch (const Poco::Util::OptionException& error) {
      return fail(error.displayText() + " (--help shows the options)", EXIT_USAGE);
    } catch (const lockkeeper::ConfigError& error) {
      return fail(error.what(), EXIT_CONFIG);
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
  void onServe(const std::string&, const std::string&) { parts_ = {.server = true, .worker = false}; }
  void onWork(const std::string&, const std::string&) { parts_ = {.server = false, .worker = true}; }

  int showHelp() const {
    Poco::Util::HelpFormatter help(options());
    help.setCommand("sms_gateway");
    help.setUsage("[OPTION…]");
    help.setHeader("Takes short messages over HTTP, within limits, and sends them at a constant rate.");
    help.format(std::cout);
    return EXIT_OK;
  }

  void findSettings() {
    if (configFile_.empty()) {
      configFile_ = config().getString("application.dir") + "sms_gateway.properties";
    }
    if (Poco::File(configFile_).exists()) return;
    throw lockkeeper::ConfigError("there is no settings file " + lockkeeper::quoted(configFile_));
  }

  Configuration layered() const {
    Poco::AutoPtr<Poco::Util::LayeredConfiguration> all(new Poco::Util::LayeredConfiguration);
    Poco::AutoPtr<Poco::Util::PropertyFileConfiguration> file(
        new Poco::Util::PropertyFileConfiguration(configFile_));
    all->add(Poco::AutoPtr<Poco::Util::AbstractConfiguration>(&config(), true), 0);
    all->add(file, 1);
    return all;
  }

  std::string configFile_;
  Parts parts_;
  bool help_ = false;
};

int runApplication(int argc, char** argv) {
  Poco::AutoPtr<SmsGateway> application = new SmsGateway;
  try {
    application->init(argc, argv);
  } catch (...) {
    return SmsGateway::report();
  }
  return application->run();
}

}  // namespace
}  // namespace sms_gateway

int main(int argc, char** argv) { return sms_gateway::runApplication(argc, argv); }
