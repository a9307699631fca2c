#include "getlock/getlock_options.h"

namespace lockkeeper::mysql {
namespace {

constexpr std::size_t mostConnections = 256;

}  // namespace

GetLockOptions GetLockOptions::fromUri(const StoreUri& uri) {
  uri.allowOnly({"caFile", "certFile", "connections", "connectTimeout", "createTable", "fence", "ioTimeout",
                 "keyFile", "passwordFile", "socket", "tls", "verify"});
  GetLockOptions options{ServerOptions::fromUri(uri)};
  options.fence = uri.flag("fence", options.fence);
  options.connections = uri.number("connections", options.connections, 1, mostConnections);
  return options;
}

}  // namespace lockkeeper::mysql
