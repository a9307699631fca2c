#include "completion/candidates.h"

#include <Poco/Util/Option.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace lockkeeper::cli {
namespace {

using Poco::Util::Option;
using Poco::Util::OptionSet;

constexpr const char* files = ":files";
constexpr const char* commandLine = ":command";

/// What an option, or a command in the place of its first operand, takes.
std::vector<std::string> valuesOf(std::string_view name) {
  if (name == "config" || name == "break-password" || name == "check") return {files};
  if (name == "listen") return {"127.0.0.1:8470", "[::1]:8470"};
  if (name == "kind") return {"token-bucket", "leaky-meter", "leaky-queue", "sliding-window", "fixed-window"};
  if (name == "sort") return {"waiting", "key", "owner", "age", "remaining", "turns"};
  if (name == "completion") return {"bash", "fish", "zsh"};
  if (name == "migrate") return {"audit", "status", "advance"};
  if (name == "store") {
    return {"redis://",        "rediss://",  "redis+unix:///",   "redis+sentinel://", "redis+cluster://",
            "redis+legacy://", "redlock://", "mysql+getlock://", "mysql+version://",  "postgres+version://",
            "etcd://",         "etcds://",   "memory:"};
  }
  return {};
}

std::vector<std::string> startingWith(std::string_view word, std::vector<std::string> all) {
  std::erase_if(all, [&](const std::string& each) { return each != files && !each.starts_with(word); });
  return all;
}

const Option* optionNamed(const OptionSet& options, std::string_view word) {
  const auto found = std::find_if(options.begin(), options.end(), [&](const Option& each) {
    return word == "--" + each.fullName() || (!each.shortName().empty() && word == "-" + each.shortName());
  });
  return found == options.end() ? nullptr : &*found;
}

// The first clause: a shell has one line for it.
std::string withDescription(const std::string& word, std::string_view text) {
  const std::string_view clause = text.substr(0, text.find_first_of(",;(.:"));
  return word + "\t" + std::string(clause.substr(0, clause.find_last_not_of(' ') + 1));
}

std::vector<std::string> optionsOf(const OptionSet& options) {
  std::vector<std::string> all;
  for (const Option& each : options)
    all.push_back(withDescription("--" + each.fullName(), each.description()));
  return all;
}

std::vector<std::string> commandNames(std::span<const Command> commands) {
  std::vector<std::string> all;
  for (const Command& each : commands) all.push_back(withDescription(each.name, each.summary));
  all.insert(all.end(), {"--help", "--version"});
  return all;
}

}  // namespace

std::vector<std::string> candidates(std::span<const Command> commands, std::span<const std::string> words) {
  if (words.empty()) return {};
  const std::string& word = words.back();
  if (words.size() == 1) return startingWith(word, commandNames(commands));
  const auto command =
      std::ranges::find(commands, words.front(), [](const Command& each) { return each.name; });
  if (command == commands.end()) return {};
  const auto before = words.first(words.size() - 1);
  if (std::ranges::find(before, "--") != before.end()) {
    return words.front() == "run" ? std::vector<std::string>{commandLine} : std::vector<std::string>{};
  }
  const OptionSet options = command->options();
  const Option* const previous = optionNamed(options, before.back());
  if (previous != nullptr && previous->takesArgument())
    return startingWith(word, valuesOf(previous->fullName()));
  if (const auto equals = word.find('='); word.starts_with("--") && equals != std::string::npos) {
    std::vector<std::string> values = valuesOf(std::string_view(word).substr(2, equals - 2));
    for (std::string& each : values) {
      if (each != files) each.insert(0, word, 0, equals + 1);
    }
    return startingWith(word, std::move(values));
  }
  std::vector<std::string> all = words.size() == 2 ? valuesOf(command->name) : std::vector<std::string>{};
  for (std::string& each : optionsOf(options)) all.push_back(std::move(each));
  return startingWith(word, std::move(all));
}

}  // namespace lockkeeper::cli
