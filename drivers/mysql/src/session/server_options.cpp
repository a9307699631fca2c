#include "session/server_options.h"

#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds longestTimeout{60};

seconds readConnectTimeout(const StoreUri& uri, seconds otherwise) {
  const milliseconds length = uri.duration("connectTimeout", otherwise, seconds{1}, longestTimeout);
  if (length % seconds{1} == milliseconds{0}) return std::chrono::duration_cast<seconds>(length);
  throw ConfigError("the store's parameter 'connectTimeout' is " + formatDuration(length) +
                    ": it must be whole seconds, because the client library counts no others");
}

}  // namespace

void allowOnly(const StoreUri& uri, std::vector<std::string_view> own) {
  own.insert(own.end(), ServerLogin::parameters.begin(), ServerLogin::parameters.end());
  uri.allowOnly(own);
}

ServerOptions ServerOptions::fromUri(const StoreUri& uri) {
  ServerOptions options{ServerLogin::read(uri, {.defaultPort = 3306})};
  options.createTable = uri.flag("createTable", options.createTable);
  options.connectTimeout = readConnectTimeout(uri, options.connectTimeout);
  options.ioTimeout = uri.duration("ioTimeout", options.ioTimeout, milliseconds{1}, longestTimeout);
  return options;
}

}  // namespace lockkeeper::mysql
