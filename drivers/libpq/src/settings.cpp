#include "lockkeeper/libpq/settings.h"

namespace lockkeeper::libpq {
namespace {

// Not all versions know it. With `true`, current_setting() returns NULL then.
constexpr std::string_view sinceVersion17 = "transaction_timeout";

}  // namespace

// Functions only, with their schema: until this has run, search_path may lead to operators of others.
std::string pinning(const Settings& settings, bool isLocal) {
  const std::string end = std::string("', ") + (isLocal ? "true" : "false") + ")";
  const auto set = [&](std::string_view name, std::string_view value) {
    return std::string("pg_catalog.set_config('").append(name).append("', '").append(value) + end;
  };
  std::string all =
      "CASE WHEN pg_catalog.texteq(pg_catalog.current_setting('synchronous_commit'), 'off') THEN " +
      set("synchronous_commit", "local") + " END, " + set("client_min_messages", "warning") + ", " +
      set("default_transaction_isolation", "read committed");
  for (const auto& [name, value] : settings) {
    if (name == sinceVersion17) {
      all += ", CASE WHEN pg_catalog.current_setting('" + std::string(name) + "', true) IS NOT NULL THEN " +
             set(name, value) + " END";
    } else {
      all += ", " + set(name, value);
    }
  }
  if (isLocal) return all;
  // A host that has vanished is noticed, and an idle session is kept; those of a pooler are its own affair.
  for (const auto& [name, value] : {std::pair{"tcp_keepalives_idle", "10"},
                                    {"tcp_keepalives_interval", "5"},
                                    {"tcp_keepalives_count", "3"},
                                    {"idle_session_timeout", "0"}})
    all += ", " + set(name, value);
  return all;
}

}  // namespace lockkeeper::libpq
