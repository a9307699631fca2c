#include "sample_application.h"

#include <Poco/File.h>
#include <Poco/Util/HelpFormatter.h>
#include <Poco/Util/LayeredConfiguration.h>
#include <Poco/Util/OptionException.h>
#include <Poco/Util/PropertyFileConfiguration.h>

#include <iostream>

#include "lockkeeper/error.h"

namespace samples {

using Poco::Util::Option;

int SampleApplication::start(int argc, char** argv) {
  try {
    init(argc, argv);
  } catch (...) {
    return report();
  }
  return run();
}

void SampleApplication::defineOptions(Poco::Util::OptionSet& options) {
  Application::defineOptions(options);
  options.addOption(flag("help", "show this").shortName("h"));
  options.addOption(
      setting("config", "settings file instead of the .properties beside the program", "FILE", "config"));
}

Option SampleApplication::setting(const char* name, const char* text, const char* argument, const char* key) {
  return Option(name, "", text).argument(argument).binding(key).repeatable(true);  // The last one counts.
}

Option SampleApplication::flag(const char* name, const char* text) {
  return Option(name, "", text).binding(name);
}

Configuration SampleApplication::readConfiguration() const {
  const std::string file =
      config().getString("config", config().getString("application.dir") +
                                       config().getString("application.baseName") + ".properties");
  if (!Poco::File(file).exists()) {
    throw lockkeeper::ConfigError("there is no settings file " + lockkeeper::quoted(file));
  }
  Poco::AutoPtr<Poco::Util::LayeredConfiguration> all(new Poco::Util::LayeredConfiguration);
  all->add(Configuration(&config(), true), 0);
  all->add(Configuration(new Poco::Util::PropertyFileConfiguration(file)), 1);
  return all;
}

// Catches all: Poco's run() would log it and answer with one code for everything.
int SampleApplication::main(const ArgVec& arguments) {
  try {
    if (given("help")) return help();
    if (!arguments.empty()) throw Poco::Util::UnknownOptionException(arguments.front());
    return work();
  } catch (...) {
    return report();
  }
}

int SampleApplication::help() const {
  Poco::Util::HelpFormatter text(options());
  text.setCommand(commandName());
  text.setUsage("[OPTION…]");
  text.setHeader(purpose_);
  text.format(std::cout);
  return EXIT_OK;
}

/// Says on stderr, in one line, what exception is being handled; returns the exit code for it.
int SampleApplication::report() const {
  const auto fail = [&](const std::string& message, int code) {
    std::cerr << commandName() << ": " << message << '\n';
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

}  // namespace samples
