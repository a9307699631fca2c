#pragma once

#include <Poco/Util/OptionSet.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockkeeper::cli {

/// The command line is wrong: exit 64.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A command's arguments, taken apart.
struct CommandLine {
  std::map<std::string, std::string> options;           ///< By full name; "" for those that take no value.
  std::vector<std::string> operands;                    ///< What is no option, before "--".
  std::optional<std::vector<std::string>> afterDashes;  ///< What stands after "--", when there is one.

  bool has(const std::string& name) const { return options.contains(name); }
  std::optional<std::string> option(const std::string& name) const;

  /// The operands together with what follows "--", when there are `least` to `most` of them. Throws
  /// UsageError, saying `what` is expected.
  std::vector<std::string> operandsOf(std::size_t least, std::size_t most, const std::string& what) const;
};

/// Throws UsageError.
CommandLine parseCommandLine(const Poco::Util::OptionSet& options, const std::vector<std::string>& arguments);

}  // namespace lockkeeper::cli
