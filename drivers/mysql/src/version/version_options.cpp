#include "version/version_options.h"

#include <cstddef>

namespace lockkeeper::mysql {
namespace {

// Servers allow 64 characters. The name of the table of shares has "_shares" behind it.
constexpr std::size_t longestTableName = 57;

}  // namespace

VersionOptions VersionOptions::fromUri(const StoreUri& uri) {
  allowOnly(uri, {"connections", "connectTimeout", "createTable", "ioTimeout", "table"});
  VersionOptions options{ServerOptions::fromUri(uri)};
  options.table = uri.name("table", options.table, longestTableName);
  options.connections = uri.number("connections", options.connections, 1, mostConnections);
  return options;
}

}  // namespace lockkeeper::mysql
