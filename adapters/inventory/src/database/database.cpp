#include "database/database.h"

#include <algorithm>

#include "lockkeeper/internal/backoff.h"

namespace lockkeeper::inventory {
namespace {

constexpr int maxAttempts = 4;
constexpr std::chrono::milliseconds firstPause{2};
constexpr std::chrono::milliseconds longestPause{8};

}  // namespace

std::unique_ptr<Backend> makeBackend(std::string_view uri, const StockOptions& options) {
  if (uri.starts_with("sqlite:")) return makeSqliteBackend(uri, options);
  if (uri.starts_with("mysql://")) return makeServerBackend(uri, options);
  if (uri.starts_with("postgres://")) {
#ifdef LOCKKEEPER_HAS_POSTGRES
    return makePostgresBackend(uri, options);
#else
    throw ConfigError(
        "this lockkeeper::inventory was built without PostgreSQL: build it with "
        "LOCKKEEPER_BUILD_POSTGRES=ON");
#endif
  }
  throw ConfigError("the database URI must begin with sqlite:/, mysql:// or postgres://");
}

Database::Database(std::string_view uri, const StockOptions& options)
    : environment_(options.environment), backend_(makeBackend(uri, options)) {}

Transaction Database::begin(Access access, Instant latest) {
  forkGuard_.check();
  // A server would be cut off before it can answer, which costs all sessions that are idle.
  if (environment_.clock->now() >= latest) {
    throw StoreUnavailable(display() + ": no time is left for a transaction");
  }
  return backend_->begin(access, latest);
}

bool Database::attempt(const std::function<void()>& transaction, Instant latest) {
  Clock& clock = *environment_.clock;
  Backoff backoff(firstPause, longestPause);
  for (int attempt = 1;; ++attempt) {
    try {
      transaction();
      return true;
    } catch (const StoreUnavailable& failure) {
      const bool undone = dynamic_cast<const Undone*>(&failure) != nullptr;
      const Fault fault = undone ? Fault::lostSession : backend_->faultOf(failure);
      const bool last = attempt == maxAttempts || clock.now() >= latest;
      if (fault == Fault::contention && last) return false;
      if (fault == Fault::final || last) throw;
    }
    const Instant paused = saturatingAdd(clock.now(), backoff.next(*environment_.random));
    pauseUntil(clock, std::min(paused, latest));
  }
}

void Database::run(const std::function<void()>& transaction, Instant latest) {
  if (!attempt(transaction, latest)) throw StaysLocked(display() + ": stayed locked by others");
}

void Database::runUntilKnown(const std::function<void()>& transaction) {
  std::string doubt;
  try {
    run([&] {
      try {
        transaction();
      } catch (const OutcomeUnknown& lost) {
        doubt = lost.what();
        throw Undone(doubt);
      }
    });
  } catch (const Error&) {
    if (!doubt.empty()) throw OutcomeUnknown(doubt);
    throw;
  }
}

void commitAgain(Transaction& transaction) {
  try {
    transaction.commit();
  } catch (const OutcomeUnknown& doubt) {
    throw Database::Undone(doubt.what());
  }
}

}  // namespace lockkeeper::inventory
