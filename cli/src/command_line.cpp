#include "command_line.h"

#include <Poco/Util/OptionException.h>
#include <Poco/Util/OptionProcessor.h>

#include <algorithm>

#include "lockkeeper/error.h"

namespace lockkeeper::cli {
namespace {

/// Without the value, which may be a secret that was given to the wrong option.
std::string nameIn(const std::string& argument) {
  return quoted(argument.substr(0, argument.find_first_of("=:")));
}

}  // namespace

std::optional<std::string> CommandLine::option(const std::string& name) const {
  const auto found = options.find(name);
  return found == options.end() ? std::nullopt : std::optional{found->second};
}

std::vector<std::string> CommandLine::operandsOf(std::size_t least, std::size_t most,
                                                 const std::string& what) const {
  std::vector<std::string> all = operands;
  if (afterDashes) all.insert(all.end(), afterDashes->begin(), afterDashes->end());
  if (all.size() < least || all.size() > most) {
    throw UsageError("expected " + what + ", got " + std::to_string(all.size()) + " arguments");
  }
  return all;
}

CommandLine parseCommandLine(const Poco::Util::OptionSet& options,
                             const std::vector<std::string>& arguments) {
  CommandLine result;
  std::string argument;
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes != arguments.end()) result.afterDashes.emplace(dashes + 1, arguments.end());
  try {
    Poco::Util::OptionProcessor processor(options);
    processor.setUnixStyle(true);
    for (auto next = arguments.begin(); next != dashes; ++next) {
      argument = *next;
      std::string name;
      std::string value;
      if (!processor.process(argument, name, value)) {
        result.operands.push_back(argument);
      } else if (!name.empty()) {
        result.options[name] = value;
      }
    }
    processor.checkRequired();
  } catch (const Poco::Util::UnexpectedArgumentException&) {
    throw UsageError(nameIn(argument) + " takes no value");
  } catch (const Poco::Util::UnknownOptionException&) {
    throw UsageError("no option " + nameIn(argument));
  } catch (const Poco::Util::OptionException& error) {
    throw UsageError(error.displayText());
  }
  return result;
}

}  // namespace lockkeeper::cli
