#include "limit/rate_table.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "arrays.h"
#include "lockkeeper/error.h"
#include "lockkeeper/limit/rate_rules.h"

namespace lockkeeper::postgres {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t chargesBetweenClearings = 100;
constexpr milliseconds longestClearingOfRates{300};
constexpr milliseconds longestRowWait{1000};

std::int64_t familyOf(RateKind kind) { return isBucket(kind) ? 0 : kind == RateKind::slidingWindow ? 1 : 2; }

RateTime roomIn(const RateCharge& charge) {
  return isBucket(charge.law->kind) ? roomOf(charge) : RateTime{charge.law->limit, 0};
}

std::vector<RowName> rowsOf(std::span<const RateCharge> charges) {
  std::vector<RowName> rows;
  for (const RateCharge& each : charges)
    rows.push_back({static_cast<int>(familyOf(each.law->kind)), each.key});
  std::ranges::sort(rows);
  return rows;
}

// One more, so that the server's line for a row does not run empty, and not all sessions, which other rows
// need.
std::size_t placesAtOneRow(std::size_t sessions) { return sessions < 4 ? 1 : 2; }

ServerOptions withOneRateSession(ServerOptions options) {
  options.connections = 1;
  return options;
}

}  // namespace

RateTable::RateTable(const ServerOptions& options, const Environment& environment)
    : texts_(options.schema),
      sessions_(options, {.script = ratesSchemaOf(options.schema), .file = "rates.sql"}, environment),
      check_(withOneRateSession(options), {}, environment),
      places_(placesAtOneRow(options.connections), *environment.clock),
      // At random, so that processes which make few charges delete rows, too.
      charges_(environment.random->upTo(chargesBetweenClearings - 1)) {}

// Half of the time is for asking: a caller without an answer cannot tell a row that is kept from a server
// that hangs.
template <class Call>
auto RateTable::onRows(const std::vector<RowName>& rows, Instant deadline, Call call) {
  const Instant now = sessions_.clock().now();
  const RowPlaces::Guard places(places_, rows, now + (deadline - now) / 2);
  if (!places.complete()) {
    checkAnswers(deadline);
    throw LockTimeout(name() + ": others wait for a row of this limit already");
  }
  try {
    return sessions_.with(deadline, call);
  } catch (const Contention& kept) {
    // What waits for a row is undone: the store is well.
    throw LockTimeout(std::string(kept.what()) + ": others keep a row of this limit");
  }
}

void RateTable::checkAnswers(Instant deadline) {
  try {
    check_.ask({"SELECT 1"}, deadline);
  } catch (const OutcomeUnknown& lost) {
    throw StoreUnavailable(lost.what());
  }
}

// A statement may wait for its turn at a row and then for the row itself. The rest of the time is for the
// answer. Computed when there is a session: waiting for one has taken some of the time.
Value RateTable::longestWait(Instant deadline) const {
  const auto left = std::chrono::floor<milliseconds>(deadline - sessions_.clock().now());
  return Value(std::int64_t{std::clamp(left / 3, milliseconds{1}, longestRowWait).count()});
}

std::vector<Value> RateTable::valuesOf(std::span<const RateCharge> charges, Instant deadline) const {
  const auto numbers = [&](auto numberOf) {
    return arrayOf(charges, [&](Array& array, const RateCharge& each) { array.add(numberOf(each)); });
  };
  return {longestWait(deadline),
          numbers([](const RateCharge& each) { return familyOf(each.law->kind); }),
          arrayOf(charges, [](Array& array, const RateCharge& each) { array.addBytes(each.key); }),
          numbers([](const RateCharge& each) { return each.cost; }),
          numbers([](const RateCharge& each) { return each.times; }),
          numbers([](const RateCharge& each) { return each.law->period; }),
          numbers([](const RateCharge& each) { return each.law->parts; }),
          numbers([](const RateCharge& each) { return roomIn(each).micros; }),
          numbers([](const RateCharge& each) { return roomIn(each).parts; })};
}

void RateTable::checkRow(const Result& result, std::size_t row, std::size_t column) const {
  if (!result.isTrue(row, column))
    throw ProtocolError(name() + ": the limit's row holds something that is no limit");
}

void RateTable::readOutcomes(const Result& result, std::span<RateCharge> charges) const {
  if (result.rows() != charges.size())
    throw ProtocolError(name() + ": the server answered " + std::to_string(result.rows()) + " rows of " +
                        std::to_string(charges.size()) + " limits");
  for (std::size_t row = 0; row < charges.size(); ++row) checkRow(result, row, 5);
  for (std::size_t row = 0; row < charges.size(); ++row) {
    const RateReading reading{.state = {result.number(row, 2), result.number(row, 3)},
                              .now = result.number(row, 1),
                              .granted = result.number(row, 0),
                              .leavesFirst = result.number(row, 4)};
    charges[row].outcome = outcomeOf(charges[row], reading);
  }
}

void RateTable::take(std::span<RateCharge> charges, Instant deadline) {
  if (charges.size() == 1 && charges.front().cost == 0) return peek(charges, deadline);
  forkGuard_.check();
  readOutcomes(onRows(rowsOf(charges), deadline,
                      [&](Session& session) {
                        std::vector<Value> values = valuesOf(charges, deadline);
                        if (charges.size() == 1)
                          return session.ask({texts_.charge, std::move(values)}, deadline);
                        return afterLocking(session, texts_.chargeAll, std::move(values), deadline);
                      }),
               charges);
  clearAfter(charges.size(), deadline);
}

Result RateTable::afterLocking(Session& session, const std::string& text, std::vector<Value> values,
                               Instant deadline) const {
  const std::vector<Statement> statements{{texts_.boundStatement, {values[0]}},
                                          {texts_.lockRows, {values[1], values[2]}},
                                          {text, std::move(values)}};
  return std::move(session.transact(statements, deadline).back());
}

void RateTable::peek(std::span<RateCharge> charges, Instant deadline) {
  forkGuard_.check();
  readOutcomes(sessions_.ask({texts_.peek, valuesOf(charges, deadline)}, deadline), charges);
}

bool RateTable::refund(const RateRefund& refund, Instant deadline) {
  forkGuard_.check();
  const RateLaw& law = *refund.law;
  const RateCharge charge{.key = refund.key, .law = &law, .cost = refund.cost};
  const std::span<const RateCharge> charges(&charge, 1);
  const bool hasSlot = isBucket(law.kind) && refund.slot;
  const RateTime end = hasSlot ? law.plus(*refund.slot, law.lengthOf(refund.cost)) : RateTime{};
  const Result result = onRows(rowsOf(charges), deadline, [&](Session& session) {
    std::vector<Value> values = valuesOf(charges, deadline);
    values.push_back(hasSlot ? Value(end.micros) : Value(nullptr));
    values.push_back(hasSlot ? Value(end.parts) : Value(nullptr));
    return afterLocking(session, texts_.refund, std::move(values), deadline);
  });
  checkRow(result, 0, 1);
  return result.isTrue(0, 0);
}

void RateTable::reset(std::string_view key, RateKind kind, Instant deadline) {
  forkGuard_.check();
  const std::int64_t family = familyOf(kind);
  onRows({{static_cast<int>(family), key}}, deadline, [&](Session& session) {
    return session.ask({texts_.reset, {longestWait(deadline), family, Value::bytes(key)}}, deadline);
  });
}

void RateTable::clearAfter(std::size_t charges, Instant deadline) noexcept {
  const std::uint64_t before = charges_.fetch_add(charges, std::memory_order_relaxed);
  if (before / chargesBetweenClearings == (before + charges) / chargesBetweenClearings) return;
  try {
    sessions_.ask({texts_.clearUnused}, std::min(deadline, sessions_.clock().now() + longestClearingOfRates));
  } catch (const std::exception&) {
    // The next one is soon enough.
  }
}

}  // namespace lockkeeper::postgres
