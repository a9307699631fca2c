#include "getlock_options.h"

#include "lockkeeper/error.h"
#include "lockkeeper/key.h"

namespace lockkeeper::mysql {
namespace {

constexpr std::size_t mostConnections = 256;

}  // namespace

GetLockOptions GetLockOptions::fromUri(const StoreUri& uri) {
  for (const char* name : {"tls", "caFile"}) {
    if (!uri.parameter(name)) continue;
    throw ConfigError("the store's parameter " + quoted(name) + " is not supported by " + uri.scheme() +
                      ": use a unix socket (socket=/path), or a tunnel that encrypts");
  }
  uri.allowOnly({"connections", "connectTimeout", "createTable", "fence", "ioTimeout", "socket"});
  GetLockOptions options{ServerOptions::fromUri(uri)};
  options.fence = uri.flag("fence", options.fence);
  options.connections = uri.number("connections", options.connections, 1, mostConnections);
  return options;
}

}  // namespace lockkeeper::mysql
