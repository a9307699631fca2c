#include "getlock/getlock_session.h"

#include <utility>

#include "getlock/getlock_statements.h"
#include "schema.h"

namespace lockkeeper::mysql {

ReadySession openForLocks(const GetLockOptions& options, std::shared_ptr<Clock> clock,
                          sql::SocketWatch& watch, Instant deadline) {
  Preparation preparation{.setUp = statements::setUp()};
  if (options.fence) {
    preparation.schema = getlockSchema;
    preparation.checkTable = statements::checkFences();
  }
  return openSession(options, preparation, std::move(clock), watch, deadline);
}

}  // namespace lockkeeper::mysql
