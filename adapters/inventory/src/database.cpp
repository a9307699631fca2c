#include "database.h"

#include "lockkeeper/error.h"
#include "sql_fault.h"

namespace lockkeeper::inventory {
namespace {

constexpr int maxAttempts = 4;
constexpr std::uint64_t firstPauseMicroseconds = 2000;  // Doubles, and is drawn between half and whole.

// SQLite lets one writer in at a time and makes the others poll: better they queue for its only session.
std::size_t poolSize(const DatabaseUri& uri, std::size_t sessions) {
  return uri.dialect == Dialect::sqlite ? 1 : sessions;
}

}  // namespace

Database::Database(const DatabaseUri& uri, std::size_t sessions, std::chrono::seconds operationTimeout,
                   Environment environment)
    : environment_(std::move(environment)),
      pool_(uri, poolSize(uri, sessions), operationTimeout, environment_.clock) {}

bool Database::attempt(const std::function<void()>& transaction) {
  for (int attempt = 1;; ++attempt) {
    try {
      transaction();
      return true;
    } catch (const Poco::Exception& exception) {
      const SqlFault fault = classify(exception);
      const bool last = attempt == maxAttempts;
      if (fault == SqlFault::contention && last) return false;
      if (fault == SqlFault::connectionLost) pool_.closeIdle();
      const bool again = fault == SqlFault::contention || fault == SqlFault::connectionLost;
      if (!again || last) throwAsError(exception, pool_.display());
    }
    pause(attempt);
  }
}

void Database::run(const std::function<void()>& transaction) {
  if (!attempt(transaction)) throw StoreUnavailable(pool_.display() + ": stayed locked by others");
}

void Database::pause(int attempt) {
  const std::uint64_t half = firstPauseMicroseconds << (attempt - 1) >> 1;
  const std::chrono::microseconds length(half + environment_.random->upTo(half));
  const Instant until = saturatingAdd(environment_.clock->now(), length);
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock held(mutex);
  while (environment_.clock->now() < until) environment_.clock->wait(held, never, until);
}

}  // namespace lockkeeper::inventory
