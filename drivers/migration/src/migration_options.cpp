#include "lockkeeper/migration/migration_options.h"

#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"

namespace lockkeeper::migration {

void checkOptions(const MigrationOptions& options) {
  using std::chrono::milliseconds;
  constexpr auto check = checkDuration<>;
  checkName("migration.name", options.name);
  check("migration.heartbeat", options.heartbeat, milliseconds{10}, std::chrono::minutes{1});
  check("migration.lease", options.lease, 3 * options.heartbeat, std::chrono::minutes{10});
  check("migration.maxTtl", options.maxTtl, milliseconds{10}, std::chrono::hours{24});
  check("migration.observation", options.observation, milliseconds{0}, std::chrono::hours{24});
}

}  // namespace lockkeeper::migration
