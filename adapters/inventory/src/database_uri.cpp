#include "database_uri.h"

#include <algorithm>
#include <cctype>

#include "lockkeeper/error.h"
#include "lockkeeper/key.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::inventory {
namespace {

constexpr std::string_view sqliteScheme = "sqlite:";
constexpr std::uint16_t mysqlPort = 3306;

bool isIdentifier(std::string_view name) {
  return !name.empty() && name.size() <= 64 &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// Poco's connection string has no way to write these; it would cut the value short in silence.
void refuseUnwritable(std::string_view what, std::string_view value) {
  const bool trimmed = !value.empty() && (std::isspace(static_cast<unsigned char>(value.front())) != 0 ||
                                          std::isspace(static_cast<unsigned char>(value.back())) != 0);
  if (trimmed || value.find_first_of(std::string_view(";\0", 2)) != std::string_view::npos) {
    throw ConfigError("the database's " + std::string(what) +
                      " must not contain ';' or NUL, or begin or end with a space");
  }
}

DatabaseUri parseSqlite(std::string_view text) {
  const std::string_view path = text.substr(sqliteScheme.size());
  if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) {
    throw ConfigError("sqlite: needs the absolute path of a file (sqlite:/path/file.db), not " +
                      quoted(path));
  }
  return {Dialect::sqlite, std::string(path), std::string(text)};
}

DatabaseUri parseMysql(std::string_view text) {
  const StoreUri uri = StoreUri::parse(text);
  uri.allowOnly({});
  if (uri.endpoints().size() != 1 || uri.endpoints().front().host.empty()) {
    throw ConfigError("mysql:// needs exactly one host: mysql://user:password@host:port/database");
  }
  const std::string database = uri.path().empty() ? "" : uri.path().substr(1);
  if (!isIdentifier(database)) {
    throw ConfigError("the database name is " + quoted(database) + ": 1 to 64 of [A-Za-z0-9_] are allowed");
  }
  const Endpoint& server = uri.endpoints().front();
  refuseUnwritable("host", server.host);
  refuseUnwritable("user", server.user);
  refuseUnwritable("password", server.password);
  // The client library takes "localhost" for its unix socket, and would ignore the port.
  const std::string host = server.host == "localhost" ? "127.0.0.1" : server.host;
  return {Dialect::mysql,
          "host=" + host + ";port=" + std::to_string(server.port.value_or(mysqlPort)) +
              ";user=" + server.user + ";password=" + server.password + ";db=" + database,
          uri.display()};
}

}  // namespace

DatabaseUri DatabaseUri::parse(std::string_view text) {
  if (text.starts_with(sqliteScheme)) return parseSqlite(text);
  if (text.starts_with("mysql://")) return parseMysql(text);
  throw ConfigError("the database URI must begin with sqlite:/ or mysql://");
}

}  // namespace lockkeeper::inventory
