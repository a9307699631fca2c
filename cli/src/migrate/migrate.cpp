#include "migrate/migrate.h"

#include "lockkeeper/error.h"
#include "migrate/migrate_audit.h"
#include "migrate/observed_migration.h"

namespace lockkeeper::cli {

int migrate(const CommandLine& line) {
  if (line.operands.empty()) throw UsageError("migrate what? There are: audit, status, advance");
  CommandLine rest = line;
  rest.operands.erase(rest.operands.begin());
  const std::string& what = line.operands.front();
#ifdef LOCKKEEPER_WITH_REDIS
  if (what == "audit") return auditLegacyKeys(rest);
#endif
  if (what == "status") return showMigration(rest);
  if (what == "advance") return advanceMigration(rest);
  throw UsageError("no migrate " + lockkeeper::quoted(what) + "; there are: audit, status, advance");
}

}  // namespace lockkeeper::cli
