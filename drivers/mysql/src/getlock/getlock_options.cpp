#include "getlock/getlock_options.h"

namespace lockkeeper::mysql {

GetLockOptions GetLockOptions::fromUri(const StoreUri& uri) {
  allowOnly(uri, {"connections", "connectTimeout", "createTable", "fence", "ioTimeout"});
  GetLockOptions options{ServerOptions::fromUri(uri)};
  options.fence = uri.flag("fence", options.fence);
  options.connections = uri.number("connections", options.connections, 1, mostConnections);
  return options;
}

}  // namespace lockkeeper::mysql
