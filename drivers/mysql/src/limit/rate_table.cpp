#include "lockkeeper/mysql/rate_table.h"

#include <algorithm>
#include <string>
#include <vector>

#include "hosts/session_opener.h"
#include "hosts/session_pool.h"
#include "limit/rate_statements.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/row_places.h"
#include "lockkeeper/limit/rate_rules.h"
#include "schema.h"
#include "session/reply_fault.h"
#include "session/statements/held_rows.h"

namespace lockkeeper::mysql {
namespace {

using rates::RowName;

constexpr std::size_t mostRateSessions = 8;
// One is charged while the other is on its way.
constexpr std::size_t mostAtOneRow = 2;

/// One row as the server has it, and the server's time.
struct Row {
  RateState state;
  RateLog log;
  std::int64_t now = 0;

  /// Not when somebody else has written it.
  bool isLimit() const {
    return canBeOfState(state.first) && canBeOfState(state.second) && std::ranges::all_of(log, canBeOfState);
  }
};

RateReading lookAt(const RateCharge& charge, const Row& row) {
  return charge.law->kind == RateKind::slidingWindow ? lookAt(charge, row.log, row.now)
                                                     : lookAt(charge, row.state, row.now);
}

RateReading admit(const RateCharge& charge, Row& row) {
  if (charge.law->kind == RateKind::slidingWindow) return admit(charge, row.log, row.now);
  const std::int64_t granted = admit(charge, row.state, row.now);
  return {.state = row.state, .now = row.now, .granted = granted};
}

void addUpdate(std::string& batch, const RowName& name, const RateLaw& law, const Row& row) {
  if (law.kind == RateKind::slidingWindow) {
    rates::addUpdate(batch, name, row.log, law.period);
  } else {
    rates::addUpdate(batch, name, row.state, isBucket(law.kind) ? 1 : law.period);
  }
}

std::vector<RowName> rowsOf(std::span<const RateCharge> charges) {
  std::vector<RowName> names;
  names.reserve(charges.size());
  for (const RateCharge& each : charges) names.push_back(rates::rowOf(each.key, each.law->kind));
  return names;
}

}  // namespace

class RateTable::Impl {
 public:
  Impl(const StoreUri& uri, const Environment& environment)
      : opener_(ServerOptions::fromUri(uri),
                {.rules = rates::sessionRules,
                 .schema = ratesSchema,
                 .checkTable = rates::checkTable(),
                 .schemaFile = "rates.sql",
                 .readTable = rates::readTable()},
                environment),
        sessions_(opener_, mostRateSessions),
        places_(mostAtOneRow, opener_.clock()),
        unusedRows_(rates::unusedRows(), *environment.random) {}

  /// Runs a transaction on these rows, which it gets in order. Throws LockTimeout when others keep one: the
  /// store is well.
  template <class Transaction>
  auto onRows(std::vector<RowName> rows, Transaction transaction, Instant deadline);
  void chargeOne(RateCharge& charge, Instant deadline);
  void chargeAll(std::span<RateCharge> charges, std::span<const RowName> names, Instant deadline);
  void peek(std::span<RateCharge> charges, Instant deadline);
  bool refund(const RateRefund& refund, const RowName& name, Instant deadline);
  void reset(const RowName& name, Instant deadline);
  void clearAfter(std::size_t charges, Instant deadline) noexcept {
    unusedRows_.clearAfter(charges, sessions_, deadline);
  }

  const ForkGuard forkGuard;

 private:
  using Use = SessionPool::Use;

  static Row rowIn(const Reply& reply, const RowName& name);
  /// The server is well, and the session good for other keys.
  [[noreturn]] void refuseForeignRow() const {
    throw ProtocolError(opener_.display() + ": the limit's row holds something that is no limit");
  }
  /// Throws StoreUnavailable when the server does not answer.
  void checkAnswers(Instant deadline);
  /// Throws LockTimeout when all are with callers who wait for rows.
  Use session(Instant deadline);
  /// Half of the time is for asking: who has less left cannot tell a row that is kept from a server that
  /// hangs.
  Instant latestAsking(Instant deadline) const {
    const Instant now = opener_.clock().now();
    return now + (deadline - now) / 2;
  }
  /// Between the two round trips of a transaction.
  std::chrono::seconds idleUntil(Instant deadline) const {
    return longestIdle(opener_.clock().now(), deadline);
  }
  const Reply& ask(Use& use, const std::string& statements, Instant deadline) {
    return use.askOrCancel(statements, cancelling_.latestCancel(deadline), deadline, cancelling_);
  }

  SessionOpener opener_;
  SessionPool sessions_;
  // For what must not wait until one of those is free, all of which may wait for rows.
  SessionPool cancelling_{opener_, 1};
  RowPlaces places_;
  UnusedRows unusedRows_;
};

template <class Transaction>
auto RateTable::Impl::onRows(std::vector<RowName> rows, Transaction transaction, Instant deadline) {
  std::ranges::sort(rows);
  const RowPlaces::Guard places(places_, rows, latestAsking(deadline));
  if (!places.complete()) {
    checkAnswers(deadline);
    throw LockTimeout(opener_.display() + ": others wait for a row of this limit already");
  }
  const auto fail = [](const Contention& why) {
    throw LockTimeout(std::string(why.what()) + ": others keep a row of this limit");
  };
  while (true) {
    try {
      return transaction(std::span<const RowName>(rows));
    } catch (const RowDeadlock& deadlock) {
      // Rows that are removed while others wait to charge them make those wait for each other. What was
      // undone is as if it had never been asked for, and one of them has gone on: again, at once.
      if (opener_.clock().now() >= deadline) fail(deadlock);
    } catch (const Contention& contention) {
      fail(contention);
    }
  }
}

void RateTable::Impl::checkAnswers(Instant deadline) {
  try {
    Use use(cancelling_, deadline);
    use.ask("DO 0", deadline);
    use.keep();
  } catch (const OutcomeUnknown& lost) {
    throw StoreUnavailable(lost.what());
  }
}

SessionPool::Use RateTable::Impl::session(Instant deadline) {
  try {
    return Use(sessions_, deadline, latestAsking(deadline));
  } catch (const SessionsInUse& all) {
    checkAnswers(deadline);
    throw LockTimeout(std::string(all.what()) + ": others wait for rows of other limits");
  }
}

Row RateTable::Impl::rowIn(const Reply& reply, const RowName& name) {
  Row row;
  for (const Reply::Row& each : reply.rows) {
    row.now = numberIn(each.at(0));
    if (!each.at(2) || *each.at(2) != name.id || numberIn(each.at(1)) != name.family) continue;
    row.state = {numberIn(each.at(3)), numberIn(each.at(4))};
    row.log = rates::readLog(each.at(5).value_or(""));
    break;
  }
  return row;
}

void RateTable::Impl::chargeOne(RateCharge& charge, Instant deadline) {
  Use use = session(deadline);
  const Reply& reply = ask(use, rates::charge(charge), deadline);
  if (reply.rows.empty()) throw ProtocolError(opener_.display() + ": the server answered no row");
  use.keep();
  const Reply::Row& answer = reply.rows.front();
  const Row row{
      .state = {numberIn(answer.at(2)), numberIn(answer.at(3))}, .log = {}, .now = numberIn(answer.at(1))};
  if (!row.isLimit()) refuseForeignRow();
  charge.outcome = outcomeOf(charge, {.state = row.state, .now = row.now, .granted = numberIn(answer.at(0))});
}

void RateTable::Impl::chargeAll(std::span<RateCharge> charges, std::span<const RowName> names,
                                Instant deadline) {
  Use use = session(deadline);
  const Reply& reply = ask(use, rates::hold(names, idleUntil(deadline)), deadline);
  std::vector<Row> rows;
  rows.reserve(charges.size());
  for (const RateCharge& each : charges) {
    rows.push_back(rowIn(reply, rates::rowOf(each.key, each.law->kind)));
  }
  const bool allLimits = std::ranges::all_of(rows, &Row::isLimit);
  bool fits = allLimits;
  for (std::size_t i = 0; allLimits && i < charges.size(); ++i) {
    charges[i].outcome = outcomeOf(charges[i], lookAt(charges[i], rows[i]));
    // Of one charge, as much as fits; of several, all or nothing.
    fits = fits && charges[i].outcome.granted >= (charges.size() == 1 ? 1 : charges[i].times);
  }
  std::string batch;
  for (std::size_t i = 0; fits && i < charges.size(); ++i) {
    if (charges[i].cost == 0) continue;
    charges[i].outcome = outcomeOf(charges[i], admit(charges[i], rows[i]));
    addUpdate(batch, rates::rowOf(charges[i].key, charges[i].law->kind), *charges[i].law, rows[i]);
  }
  // A refusal is committed, too: a row that was made for it and taken back would make others who wait for it
  // deadlock.
  use.ask(rates::commit(batch), deadline);
  use.keep();
  if (!allLimits) refuseForeignRow();
}

void RateTable::Impl::peek(std::span<RateCharge> charges, Instant deadline) {
  Use use = session(deadline);
  const Reply& reply = use.ask(rates::readRows(rowsOf(charges)), deadline);
  use.keep();
  for (RateCharge& each : charges) {
    const Row row = rowIn(reply, rates::rowOf(each.key, each.law->kind));
    if (!row.isLimit()) refuseForeignRow();
    each.outcome = outcomeOf(each, lookAt(each, row));
  }
}

bool RateTable::Impl::refund(const RateRefund& refund, const RowName& name, Instant deadline) {
  Use use = session(deadline);
  const Reply& reply = ask(use, rates::holdIfThere(name, idleUntil(deadline)), deadline);
  Row row = rowIn(reply, name);
  const bool isLimit = row.isLimit();
  const bool given = isLimit && !reply.rows.empty() &&
                     (refund.law->kind == RateKind::slidingWindow ? applyRefund(refund, row.log, row.now)
                                                                  : applyRefund(refund, row.state, row.now));
  std::string batch;
  if (given) addUpdate(batch, name, *refund.law, row);
  use.ask(rates::commit(batch), deadline);
  use.keep();
  if (!isLimit) refuseForeignRow();
  return given;
}

void RateTable::Impl::reset(const RowName& name, Instant deadline) {
  Use use = session(deadline);
  ask(use, rates::remove(name), deadline);
  use.keep();
}

RateTable::RateTable(const StoreUri& uri, const Environment& environment)
    : impl_(std::make_unique<Impl>(uri, environment)) {}

RateTable::~RateTable() {
  // Closing an inherited session properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

void RateTable::take(std::span<RateCharge> charges, Instant deadline) {
  impl_->forkGuard.check();
  if (charges.size() == 1 && charges.front().cost == 0) return impl_->peek(charges, deadline);
  const bool inOneStatement = charges.size() == 1 && charges.front().law->kind != RateKind::slidingWindow;
  impl_->onRows(
      rowsOf(charges),
      [&](std::span<const RowName> rows) {
        inOneStatement ? impl_->chargeOne(charges.front(), deadline)
                       : impl_->chargeAll(charges, rows, deadline);
      },
      deadline);
  impl_->clearAfter(charges.size(), deadline);
}

void RateTable::peek(std::span<RateCharge> charges, Instant deadline) {
  impl_->forkGuard.check();
  impl_->peek(charges, deadline);
}

bool RateTable::refund(const RateRefund& refund, Instant deadline) {
  impl_->forkGuard.check();
  return impl_->onRows(
      {rates::rowOf(refund.key, refund.law->kind)},
      [&](std::span<const RowName> rows) { return impl_->refund(refund, rows.front(), deadline); }, deadline);
}

void RateTable::reset(std::string_view key, RateKind kind, Instant deadline) {
  impl_->forkGuard.check();
  impl_->onRows(
      {rates::rowOf(key, kind)}, [&](std::span<const RowName> rows) { impl_->reset(rows.front(), deadline); },
      deadline);
}

}  // namespace lockkeeper::mysql
