#include <Poco/Util/HelpFormatter.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "exit_codes.h"
#include "lockkeeper/error.h"
#include "lockkeeper/version.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

constexpr int helpWidth = 100;
constexpr int commandColumn = 12;

void printOverview(std::ostream& out) {
  out << "usage: lockkeeper COMMAND [options] [arguments]\n\n"
         "Locks that programs on many machines share, kept in Redis, MariaDB, MySQL, PostgreSQL or etcd.\n\n";
  for (const Command& command : commands()) {
    out << "  " << std::left << std::setw(commandColumn) << command.name << command.summary << "\n";
  }
  out << "\nlockkeeper COMMAND --help explains a command, with examples. lockkeeper --version tells the "
         "version.\n"
         "Commands that print data print JSON with --json: all but run, serve and completion.\n";
}

void printHelp(const Command& command) {
  const Poco::Util::OptionSet options = command.options();
  Poco::Util::HelpFormatter formatter(options);
  formatter.setCommand("lockkeeper " + std::string(command.name));
  formatter.setUsage(command.usage);
  formatter.setHeader(command.header);
  formatter.setFooter(command.footer);
  formatter.setUnixStyle(true);
  formatter.setWidth(helpWidth);
  formatter.setAutoIndent();
  formatter.format(std::cout);
}

int dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) throw UsageError("no command; lockkeeper --help lists them");
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    printOverview(std::cout);
    return exitOk;
  }
  if (name == "--version") {
    std::cout << "lockkeeper " << LOCKKEEPER_VERSION << "\n";
    return exitOk;
  }
  const auto all = commands();
  const auto command =
      std::find_if(all.begin(), all.end(), [&](const Command& candidate) { return name == candidate.name; });
  if (command == all.end())
    throw UsageError("no command " + lockkeeper::quoted(name) + "; lockkeeper --help lists them");
  const CommandLine line = parseCommandLine(command->options(), {arguments.begin() + 1, arguments.end()});
  if (line.has("help")) {
    printHelp(*command);
    return exitOk;
  }
  return command->execute(line);
}

int exitCodeOf(const Error& error) {
  switch (error.code()) {
    case ErrorCode::config:
      return exitConfig;
    case ErrorCode::lockTimeout:
    case ErrorCode::deadlock:
      return exitBusy;
    case ErrorCode::lockLost:
      return exitLost;
    case ErrorCode::storeUnavailable:
    case ErrorCode::outcomeUnknown:
    case ErrorCode::protocol:
      return exitUnreachable;
    case ErrorCode::cancelled:
    case ErrorCode::forked:
      break;
  }
  return exitInternal;
}

int complain(int exitCode, const std::exception& error) {
  std::cerr << "lockkeeper: " << oneLine(error.what()) << "\n";
  return exitCode;
}

/// Success only if what was said has been written. A reader that has gone wants no more of it.
int afterOutput(int exitCode) {
  if (std::cout.flush() || exitCode != exitOk) return exitCode;
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  const bool readerGone = ::poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
  if (!readerGone) throw std::runtime_error("the output could not be written");
  return exitCode;
}

/// Takes the store's URI, which may hold a password, out of what the process list shows.
void hideUris(int count, char** arguments) {
  for (int i = 1; i < count && std::string_view(arguments[i]) != "--"; ++i) {
    if (char* address = std::strstr(arguments[i], "://")) std::memset(address, 'x', std::strlen(address));
  }
}

/// Process 1 of a container ends only by signals that have a handler.
void endBySignals() {
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
    if (::signal(number, [](int ended) { ::_exit(exitSignal + ended); }) == SIG_IGN) {
      ::signal(number, SIG_IGN);
    }
  }
}

}  // namespace
}  // namespace lockkeeper::cli

int main(int count, char** arguments) {
  using namespace lockkeeper::cli;
  const std::vector<std::string> words(arguments + std::min(count, 1), arguments + count);
  hideUris(count, arguments);
  if (::getpid() == 1) endBySignals();
  try {
    return afterOutput(dispatch(words));
  } catch (const UsageError& error) {
    return complain(exitUsage, error);
  } catch (const lockkeeper::Error& error) {
    return complain(exitCodeOf(error), error);
  } catch (const std::invalid_argument& error) {
    return complain(exitUsage, error);
  } catch (const std::exception& error) {
    return complain(exitInternal, error);
  }
}
