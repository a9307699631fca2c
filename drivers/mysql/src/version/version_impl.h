#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <span>
#include <stop_token>
#include <string>

#include "hosts/session_opener.h"
#include "hosts/session_pool.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/error.h"
#include "lockkeeper/mysql/rate_table.h"
#include "lockkeeper/mysql/version_driver.h"
#include "session/wake_up.h"
#include "upkeep/unused_rows.h"
#include "version/given_up_sessions.h"
#include "version/lock_table.h"
#include "version/queue_place.h"
#include "version/share_table.h"
#include "version/texts/lock_texts.h"
#include "version/version_options.h"

namespace lockkeeper::mysql {

/// The sessions, and what the driver's operations share.
class VersionDriver::Impl {
 public:
  Impl(const StoreUri& uri, const Environment& environment)
      : Impl(VersionOptions::fromUri(uri), uri, environment) {}
  Impl(const VersionOptions& options, const StoreUri& uri, const Environment& environment);

  Clock& clock() { return opener_.clock(); }
  const std::string& display() const { return opener_.display(); }
  Promises promises() const { return {opener_.fencePromise(), opener_.durability()}; }

  /// For what must not wait until one of the others is free.
  SessionPool& cancelling() { return cancelling_; }

  /// The tables, on one session.
  struct Tables {
    LockTable locks;
    ShareTable shares;
  };
  /// Lets `call` use them until `deadline`, if a session is free by `freeBy`. Throws lockkeeper's errors.
  template <class Call>
  auto onTables(Instant deadline, Call call, Instant freeBy = Instant::max());

  /// One attempt.
  AcquireResult acquire(const AcquireRequest& request, LockTexts::Standing standing);
  /// In the queue of the key, on a session of its own.
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                               const std::stop_token& stop);
  static AcquireResult resultOf(const AcquireRequest& request, const LockTable::Answer& answer,
                                Instant leasedFrom);

  /// After so many releases.
  void clearAfter(std::size_t releases, Instant deadline) noexcept {
    unusedRows_.clearAfter(releases, pool_, deadline);
  }
  /// Now and then, deletes what those have left behind who died with a share of a key that nobody shares any
  /// more. What goes wrong then is none of the caller's business.
  void clearEndedShares(Instant deadline) noexcept;

  /// Writes the outcome of each: `unavailable` of those about which nothing was heard.
  void renew(std::span<Renewal> renewals, Instant deadline);

  const ForkGuard forkGuard;
  RateTable rates;

 private:
  AcquireResult acquire(Tables& tables, const AcquireRequest& request, LockTexts::Standing standing);
  AcquireResult acquireShare(Tables& tables, const AcquireRequest& request, LockTexts::Standing standing);

  /// Asks for the key, as the first in its queue or as an upgrade, until it is granted or the wait is over.
  AcquireResult askUntilGranted(SessionPool::Use& session, const QueuePlace& place, AcquireRequest request,
                                LockTexts::Standing standing, Instant until, const std::stop_token& stop,
                                const WakeUp& wakeUp);
  /// Busy unless the key is free, is kept for nobody, and stays so although the first in the queue may have
  /// it. `waiting` waits for its turn in the queue.
  AcquireResult acquireIfFree(AcquireRequest request, SessionPool::Use& waiting, const WakeUp& wakeUp);

  /// All in one of the tables.
  template <class Table>
  void renew(std::span<Renewal* const> renewals, Table Tables::*table, Instant deadline);
  /// Shares, each in the table where it is.
  void renewShares(std::span<Renewal* const> renewals, Instant deadline);

  const LockTexts texts_;
  const std::string sharesSchema_;  // "" unless the table of shares may be made
  SessionOpener opener_;
  std::atomic<bool> sharesAreChecked_ = false;
  SessionPool pool_;
  SessionPool waiting_;
  SessionPool cancelling_;
  GivenUpSessions givenUp_;
  UnusedRows unusedRows_;
  std::atomic<Instant> nextClearing_{Instant::min()};
};

template <class Call>
auto VersionDriver::Impl::onTables(Instant deadline, Call call, Instant freeBy) {
  forkGuard.check();
  if (clock().now() >= deadline) throw StoreUnavailable(opener_.display() + ": no time was left to ask");
  SessionPool::Use session(pool_, deadline, std::min(deadline, freeBy));
  givenUp_.end(session, deadline);
  Tables tables{{session, texts_, deadline}, {session, texts_, deadline}};
  try {
    auto result = call(tables);
    session.keep();
    return result;
  } catch (const OutcomeUnknown&) {
    givenUp_.add(session);
    throw;
  }
}

}  // namespace lockkeeper::mysql
