#pragma once

#include <Poco/Util/OptionSet.h>

#include <span>

#include "command_line.h"

namespace lockkeeper::cli {

/// One word after `lockkeeper`: what it takes, how it is explained, what it does.
struct Command {
  const char* name;
  const char* summary;
  const char* usage;
  const char* header;
  const char* footer;
  Poco::Util::OptionSet (*options)();
  /// Returns the exit code. Throws UsageError, or what the library throws.
  int (*execute)(const CommandLine& line);
};

std::span<const Command> commands();

int runUnderLock(const CommandLine& line);
int showKey(const CommandLine& line);
int listKeys(const CommandLine& line);
int watchKeys(const CommandLine& line);
int serveConsole(const CommandLine& line);
int breakKey(const CommandLine& line);
int limitKey(const CommandLine& line);
int checkHistory(const CommandLine& line);

}  // namespace lockkeeper::cli
