#include "version/version_options.h"

#include <cstddef>
#include <stdexcept>
#include <string>

#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/as_configured.h"

namespace lockkeeper::mysql {
namespace {

// Servers allow 64 characters. The name of the table of shares has "_shares" behind it.
constexpr std::size_t longestTableName = 57;

// It stands in statements as it is.
void checkTable(const std::string& name) {
  checkName("the table name", name, "");
  if (name.size() <= longestTableName) return;
  throw std::invalid_argument("the table name is " + quoted(name) + ": at most " +
                              std::to_string(longestTableName) +
                              " characters are allowed, because that of the shares has _shares behind it");
}

}  // namespace

VersionOptions VersionOptions::fromUri(const StoreUri& uri) {
  allowOnly(uri, {"connections", "connectTimeout", "createTable", "ioTimeout", "table"});
  VersionOptions options{ServerOptions::fromUri(uri)};
  options.table = uri.parameter("table").value_or(options.table);
  asConfigured("", [&] { checkTable(options.table); });
  options.connections = uri.number("connections", options.connections, 1, mostConnections);
  return options;
}

}  // namespace lockkeeper::mysql
