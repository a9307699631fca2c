#include "schema_tables.h"

#include <cstddef>
#include <utility>

#include "session/server_options.h"

namespace lockkeeper::postgres {
namespace {

// The names of the other tables and of the sequence have as much behind it.
constexpr std::size_t longestTable = 63 - sizeof("_waiters") + 1;

}  // namespace

std::string tableOf(const StoreUri& uri) { return uri.name("table", "lockkeeper_locks", longestTable); }

std::string quotedTable(const std::string& schema, const std::string& table, std::string_view suffix) {
  return "\"" + schema + "\".\"" + table + std::string(suffix) + "\"";
}

Tables namedTables(std::string script, std::string file, const std::string& schema,
                   const std::string& table) {
  constexpr std::string_view name = "\"public\".\"lockkeeper_locks";
  const std::string ours = "\"" + schema + "\".\"" + table;
  for (auto at = script.find(name); at != script.npos; at = script.find(name, at + ours.size()))
    script.replace(at, name.size(), ours);
  return {.script = std::move(script), .file = std::move(file)};
}

}  // namespace lockkeeper::postgres
