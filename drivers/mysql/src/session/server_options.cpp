#include "session/server_options.h"

#include <fstream>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds longestTimeout{60};
// The kernel's struct sockaddr_un has no room for more.
constexpr std::size_t longestSocketPath = 107;

milliseconds timeout(const StoreUri& uri, const char* name, milliseconds otherwise, milliseconds least) {
  const auto text = uri.parameter(name);
  if (!text) return otherwise;
  const milliseconds length = parseDuration(name, *text);
  if (length >= least && length <= longestTimeout && length % least == milliseconds{0}) return length;
  throw ConfigError(std::string(name) + " is " + quoted(*text) + ": multiples of " + formatDuration(least) +
                    " up to " + formatDuration(longestTimeout) + " are allowed");
}

void readTls(const StoreUri& uri, ServerOptions& options) {
  options.tls = uri.flag("tls", options.tls);
  if (options.tls && !options.socket.empty()) {
    throw ConfigError("both tls and socket are given: tls is for TCP");
  }
  const auto caFile = uri.parameter("caFile");
  if (!caFile) return;
  if (!options.tls) throw ConfigError("caFile is given without tls=on");
  if (!std::ifstream(*caFile).good()) throw ConfigError("caFile " + quoted(*caFile) + " cannot be read");
  options.caFile = *caFile;
}

}  // namespace

ServerOptions ServerOptions::fromUri(const StoreUri& uri) {
  ServerOptions options{.server = sql::ServerAddress::fromUri(uri)};
  options.createTable = uri.flag("createTable", options.createTable);
  // Whole seconds, because the client library counts no others.
  options.connectTimeout =
      std::chrono::duration_cast<seconds>(timeout(uri, "connectTimeout", options.connectTimeout, seconds{1}));
  options.ioTimeout = timeout(uri, "ioTimeout", options.ioTimeout, milliseconds{1});
  options.socket = uri.parameter("socket").value_or("");
  if (uri.parameter("socket") &&
      (!options.socket.starts_with('/') || options.socket.size() > longestSocketPath)) {
    throw ConfigError("the store's parameter 'socket' is " + quoted(options.socket) +
                      ": it must be an absolute path of at most " + std::to_string(longestSocketPath) +
                      " bytes");
  }
  readTls(uri, options);
  return options;
}

}  // namespace lockkeeper::mysql
