#include "version/version_options.h"

namespace lockkeeper::mysql {
namespace {

constexpr std::size_t mostConnections = 256;

}  // namespace

VersionOptions VersionOptions::fromUri(const StoreUri& uri) {
  uri.allowOnly({"caFile", "certFile", "connections", "connectTimeout", "createTable", "ioTimeout", "keyFile",
                 "passwordFile", "socket", "table", "tls", "verify"});
  VersionOptions options{ServerOptions::fromUri(uri)};
  options.table = uri.parameter("table").value_or(options.table);
  checkIdentifier("the table name", options.table);
  options.connections = uri.number("connections", options.connections, 1, mostConnections);
  return options;
}

}  // namespace lockkeeper::mysql
