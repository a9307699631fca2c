#include "limit/rate_table.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "lock/arrays.h"
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

// What waits for a row is undone: the store is well.
template <class Call>
auto onRows(Call call) {
  try {
    return call();
  } catch (const Contention& kept) {
    throw LockTimeout(std::string(kept.what()) + ": others keep a row of this limit");
  }
}

}  // namespace

RateTable::RateTable(const ServerOptions& options, const Environment& environment)
    : texts_(options.schema),
      sessions_(options, {.script = ratesSchemaOf(options.schema), .file = "rates.sql"}, environment),
      // At random, so that processes which make few charges delete rows, too.
      charges_(environment.random->upTo(chargesBetweenClearings - 1)) {}

// A statement may wait for its turn at a row and then for the row itself. The rest of the time is for the
// answer: a caller without one cannot tell a row that is kept from a server that hangs.
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
  const std::vector<Value> values = valuesOf(charges, deadline);
  readOutcomes(onRows([&] {
                 if (charges.size() == 1) return sessions_.ask({texts_.charge, values}, deadline);
                 const std::vector<Statement> statements{
                     {texts_.lockRows, {values.begin(), values.begin() + 3}}, {texts_.chargeAll, values}};
                 return std::move(sessions_.transact(statements, deadline).back());
               }),
               charges);
  clearAfter(charges.size(), deadline);
}

void RateTable::peek(std::span<RateCharge> charges, Instant deadline) {
  forkGuard_.check();
  readOutcomes(sessions_.ask({texts_.peek, valuesOf(charges, deadline)}, deadline), charges);
}

bool RateTable::refund(const RateRefund& refund, Instant deadline) {
  forkGuard_.check();
  const RateLaw& law = *refund.law;
  const RateCharge charge{.key = refund.key, .law = &law, .cost = refund.cost};
  std::vector<Value> values = valuesOf({&charge, 1}, deadline);
  const Statement locking{texts_.lockRow, {values.begin(), values.begin() + 3}};
  const bool hasSlot = isBucket(law.kind) && refund.slot;
  const RateTime end = hasSlot ? law.plus(*refund.slot, law.lengthOf(refund.cost)) : RateTime{};
  values.push_back(hasSlot ? Value(end.micros) : Value(nullptr));
  values.push_back(hasSlot ? Value(end.parts) : Value(nullptr));
  const std::vector<Statement> statements{locking, {texts_.refund, std::move(values)}};
  const std::vector<Result> results = onRows([&] { return sessions_.transact(statements, deadline); });
  const Result& result = results.back();
  if (result.rows() == 0) return false;
  checkRow(result, 0, 1);
  return result.isTrue(0, 0);
}

void RateTable::reset(std::string_view key, RateKind kind, Instant deadline) {
  forkGuard_.check();
  onRows([&] {
    return sessions_.ask({texts_.reset, {longestWait(deadline), familyOf(kind), Value::bytes(key)}},
                         deadline);
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
