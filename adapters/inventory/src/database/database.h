#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "database/backend.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/error.h"

namespace lockkeeper::inventory {

/// The database, and the patience to try a transaction again where that is safe. Thread-safe.
class Database {
 public:
  /// Connects nowhere yet. Throws ConfigError for a URI that is none of ours.
  Database(std::string_view uri, const StockOptions& options);

  Dialect dialect() const { return backend_->dialect(); }
  const std::string& display() const { return backend_->display(); }

  /// As Backend says. Throws StoreUnavailable at once when `latest` has passed, and ForkedError in a forked
  /// child.
  Transaction begin(Access access = Access::write, Instant latest = Instant::max());

  /// Whether a new transaction may succeed where this exception ended one.
  bool isContention(const std::exception& failure) const {
    return backend_->faultOf(failure) == Fault::contention;
  }

  /// A transaction has found out, or does not mind, that it was not committed: it may be tried again.
  class Undone : public StoreUnavailable {
   public:
    using StoreUnavailable::StoreUnavailable;
  };

  /// Runs `transaction` until it returns, a few times at most: again after a contention, a lost session or
  /// Undone, when it must have left nothing behind, but not after `latest`. False when contention lasted.
  /// Passes other errors on.
  bool attempt(const std::function<void()>& transaction, Instant latest = Instant::max());

  /// Others kept what a transaction needs.
  class StaysLocked : public StoreUnavailable {
   public:
    using StoreUnavailable::StoreUnavailable;
  };

  /// Like attempt(), but throws StaysLocked when contention lasted.
  void run(const std::function<void()>& transaction, Instant latest = Instant::max());

  /// Like run(), for a transaction that finds out whether it was done before: it runs again after
  /// OutcomeUnknown, too, which is thrown only when it cannot be found out.
  void runUntilKnown(const std::function<void()>& transaction);

 private:
  const Environment environment_;
  const ForkGuard forkGuard_{};
  const std::unique_ptr<Backend> backend_;
};

/// Commits what does no harm when it is done twice: throws Database::Undone when the outcome is unknown.
void commitAgain(Transaction& transaction);

}  // namespace lockkeeper::inventory
