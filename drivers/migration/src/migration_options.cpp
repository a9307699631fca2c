#include "lockkeeper/migration/migration_options.h"

#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/key.h"

namespace lockkeeper::migration {

namespace {

using std::chrono::milliseconds;

void checkRange(const std::string& name, milliseconds value, milliseconds least, milliseconds most) {
  if (value >= least && value <= most) return;
  throw ConfigError("migration." + name + " is " + formatDuration(value) + ": " + formatDuration(least) +
                    " to " + formatDuration(most) + " are allowed");
}

}  // namespace

void checkOptions(const MigrationOptions& options) {
  checkNamespace(options.name);
  if (options.name.empty()) throw ConfigError("migration.name is empty: 1 to 64 characters are allowed");
  checkRange("heartbeat", options.heartbeat, milliseconds{10}, std::chrono::minutes{1});
  checkRange("lease", options.lease, 3 * options.heartbeat, std::chrono::minutes{10});
  checkRange("maxTtl", options.maxTtl, milliseconds{10}, std::chrono::hours{24});
  checkRange("observation", options.observation, milliseconds{0}, std::chrono::hours{24});
}

}  // namespace lockkeeper::migration
