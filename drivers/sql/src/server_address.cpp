#include "lockkeeper/sql/server_address.h"

#include <algorithm>
#include <cctype>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/error.h"

namespace lockkeeper::sql {
namespace {

constexpr std::uint16_t defaultPort = 3306;

// Poco's connection string has no way to write these; it would cut the value short in silence.
void refuseUnwritable(std::string_view what, std::string_view value) {
  const bool trimmed = !value.empty() && (std::isspace(static_cast<unsigned char>(value.front())) != 0 ||
                                          std::isspace(static_cast<unsigned char>(value.back())) != 0);
  if (trimmed || value.find_first_of(std::string_view(";\0", 2)) != std::string_view::npos) {
    throw ConfigError("the database's " + std::string(what) +
                      " must not contain ';' or NUL, or begin or end with a space");
  }
}

}  // namespace

void checkIdentifier(std::string_view what, std::string_view name) {
  const bool allowed = !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
  if (!allowed) {
    throw ConfigError(std::string(what) + " is " + quoted(name) + ": 1 to 64 of [A-Za-z0-9_] are allowed");
  }
}

ServerAddress ServerAddress::fromUri(const StoreUri& uri) {
  if (uri.endpoints().size() != 1 || uri.endpoints().front().host.empty()) {
    throw ConfigError(uri.scheme() + ":// needs exactly one host: " + uri.scheme() +
                      "://user:password@host:port/database");
  }
  const std::string database = uri.path().empty() ? "" : uri.path().substr(1);
  checkIdentifier("the database name", database);
  const Endpoint& server = uri.endpoints().front();
  refuseUnwritable("host", server.host);
  refuseUnwritable("user", server.user);
  const std::string password = uri.passwordOf(server);
  refuseUnwritable("password", password);
  return {server.host, server.port.value_or(defaultPort), server.user, password, database, uri.display()};
}

std::string ServerAddress::connectionString() const {
  // The client library takes "localhost" for its unix socket, and would ignore the port.
  return "host=" + (host == "localhost" ? "127.0.0.1" : host) + ";port=" + std::to_string(port) +
         ";user=" + user + ";password=" + password + ";db=" + database;
}

}  // namespace lockkeeper::sql
