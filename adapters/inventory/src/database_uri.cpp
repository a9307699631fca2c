#include "database_uri.h"

#include "lockkeeper/driver/key.h"
#include "lockkeeper/driver/store_uri.h"
#include "lockkeeper/error.h"

namespace lockkeeper::inventory {
namespace {

constexpr std::string_view sqliteScheme = "sqlite:";

SqliteFile parseSqlite(std::string_view text) {
  const std::string_view path = text.substr(sqliteScheme.size());
  if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) {
    throw ConfigError("sqlite: needs the absolute path of a file (sqlite:/path/file.db), not " +
                      quoted(path));
  }
  return {std::string(path)};
}

sql::ServerAddress parseMysql(std::string_view text) {
  const StoreUri uri = StoreUri::parse(text);
  uri.allowOnly({"passwordFile"});
  return sql::ServerAddress::fromUri(uri);
}

}  // namespace

DatabaseUri DatabaseUri::parse(std::string_view text) {
  if (text.starts_with(sqliteScheme)) return {parseSqlite(text)};
  if (text.starts_with("mysql://")) return {parseMysql(text)};
  throw ConfigError("the database URI must begin with sqlite:/ or mysql://");
}

std::string DatabaseUri::display() const {
  if (const auto* file = std::get_if<SqliteFile>(&place)) return std::string(sqliteScheme) + file->path;
  return std::get<sql::ServerAddress>(place).display;
}

}  // namespace lockkeeper::inventory
