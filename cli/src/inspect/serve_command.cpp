#include <Poco/ConsoleChannel.h>
#include <Poco/FormattingChannel.h>
#include <Poco/Logger.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/NetException.h>
#include <Poco/Net/ServerSocket.h>
#include <Poco/PatternFormatter.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <iostream>
#include <optional>

#include "command_settings.h"
#include "commands.h"
#include "exit_codes.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/text_file.h"
#include "lockkeeper/poco/lock_console.h"
#include "lockkeeper/store_uri.h"
#include "run/end_soon.h"
#include "run/signal_queue.h"
#include "stores.h"

namespace lockkeeper::cli {
namespace {

using Poco::Net::HTTPServerRequest;

constexpr const char* usualAddress = "127.0.0.1:8470";
constexpr int mostThreads = 16;
constexpr std::size_t shortestPassword = 16;
constexpr std::size_t longestPasswordFile = 65'536;

Poco::Net::SocketAddress addressOf(const CommandLine& line) {
  const std::string given = line.option("listen").value_or(usualAddress);
  try {
    const Poco::Net::SocketAddress address(given);
    if (address.host().isLoopback()) return address;
  } catch (const Poco::Exception&) {  // said below
  }
  throw UsageError(
      "--listen is " + quoted(given) +
      ": it must be a loopback address and a port, such as 127.0.0.1:8470; for other machines, put a "
      "proxy with TLS and a log-in before it");
}

std::string passwordIn(const std::string& path) {
  const std::string text = textOfFile(path, longestPasswordFile);
  std::string password = text.substr(0, text.find('\n'));
  if (password.ends_with('\r')) password.pop_back();
  if (password.size() < shortestPassword) {
    throw ConfigError("the password in " + quoted(path) + " is too short: it must have " +
                      std::to_string(shortestPassword) + " characters or more");
  }
  return password;
}

/// Throws ConfigError for a file that every account of the machine may read or write.
void refuseFileForAll(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0 || (file.st_mode & (S_IROTH | S_IWOTH)) == 0) return;
  throw ConfigError("the password in " + quoted(path) +
                    " can be read or changed by every account of this machine: chmod o-rw it");
}

/// Who sends the password of the file is an operator.
poco::UserOf operatorsOf(const CommandLine& line) {
  const auto path = line.option("break-password");
  if (!path) return nullptr;
  refuseFileForAll(*path);
  return [expected = "Bearer " + passwordIn(*path)](const HTTPServerRequest& request) -> std::string {
    const std::string given = request.get("Authorization", "");
    // As long as the expected text is compared, whatever is given.
    unsigned difference = given.size() == expected.size() ? 0 : 1;
    for (std::size_t i = 0; i < expected.size(); ++i)
      difference |= static_cast<unsigned>(expected[i] ^ (i < given.size() ? given[i] : '\0'));
    return difference == 0 ? "an operator" : "";
  };
}

void logToErrors() {
  Poco::AutoPtr<Poco::Formatter> lines(new Poco::PatternFormatter("%Y-%m-%dT%H:%M:%SZ %s: %t"));
  Poco::AutoPtr<Poco::Channel> errors(new Poco::ConsoleChannel(std::cerr));
  Poco::AutoPtr<Poco::Channel> formatted(new Poco::FormattingChannel(lines, errors));
  Poco::Logger::root().setChannel(formatted);
}

Poco::Net::ServerSocket listenOn(const Poco::Net::SocketAddress& address) {
  try {
    return Poco::Net::ServerSocket(address);
  } catch (const Poco::Exception& error) {
    throw ConfigError("cannot listen on " + address.toString() + ": " + error.displayText());
  }
}

}  // namespace

int serveConsole(const CommandLine& line) {
  const auto operands = line.operandsOf(0, 1, "at most one PREFIX");
  const auto address = addressOf(line);
  const Settings settings = readSettings(line);
  std::optional<SignalQueue> signals(std::in_place);
  poco::ConsoleOptions options;
  options.path = "/";
  options.storeName = StoreUri::parse(settings.store).display();
  options.keyNamespace = settings.manager.keyNamespace;
  options.prefix = operands.empty() ? "" : operands.front();
  options.interval = durationOption(line, "interval", options.interval);
  if (const auto host = line.option("host")) options.hosts = {*host};
  options.operatorOf = operatorsOf(line);
  logToErrors();
  poco::LockConsole console(openStore(settings), std::move(options));

  Poco::AutoPtr<Poco::Net::HTTPServerParams> parameters(new Poco::Net::HTTPServerParams);
  parameters->setMaxThreads(mostThreads);
  parameters->setMaxQueued(100);
  parameters->setTimeout(Poco::Timespan(10, 0));
  const Poco::Net::ServerSocket socket = listenOn(address);
  Poco::ThreadPool threads(2, parameters->getMaxThreads());
  Poco::Net::HTTPServer server(console.wrap().release(), threads, socket, parameters);
  server.start();
  std::cout << "http://" << server.socket().address().toString() << "/" << std::endl;

  std::optional<int> ended;
  while (!ended) {
    pollfd ready{signals->descriptor(), POLLIN, 0};
    ::poll(&ready, 1, -1);
    while (const auto signal = signals->next()) {
      if (*signal == SIGTSTP) stopBy(SIGTSTP);
      if (asksToEnd(*signal)) ended = *signal;
    }
  }
  signals.reset();  // The next one ends us at once.
  endSoon(exitSignal + *ended);
  server.stopAll(true);
  return exitSignal + *ended;
}

}  // namespace lockkeeper::cli
