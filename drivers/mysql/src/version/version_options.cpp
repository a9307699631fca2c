#include "version/version_options.h"

#include "lockkeeper/driver/key.h"
#include "lockkeeper/internal/as_configured.h"

namespace lockkeeper::mysql {

VersionOptions VersionOptions::fromUri(const StoreUri& uri) {
  allowOnly(uri, {"connections", "connectTimeout", "createTable", "ioTimeout", "table"});
  VersionOptions options{ServerOptions::fromUri(uri)};
  options.table = uri.parameter("table").value_or(options.table);
  // It stands in statements as it is.
  asConfigured("", [&] { checkName("the table name", options.table, ""); });
  options.connections = uri.number("connections", options.connections, 1, mostConnections);
  return options;
}

}  // namespace lockkeeper::mysql
