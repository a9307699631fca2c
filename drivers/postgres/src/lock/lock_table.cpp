#include "lock/lock_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "arrays.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"

namespace lockkeeper::postgres {
namespace {

using std::chrono::milliseconds;

Value key(std::string_view bytes) { return Value::bytes(bytes); }
Value tokenOf(const Claim& claim) { return Value::bytes(bytesOf(claim.token)); }
Value orNull(const Place& place) { return place ? Value(*place) : Value(nullptr); }
// Later requests of a process have higher numbers, until its machine starts anew.
std::int64_t numberOf(Instant asked) { return asked.time_since_epoch().count(); }

Busy busyFor(const Result& result, std::size_t row, std::size_t column) {
  if (result.isNull(row, column) || result.number(row, column) <= 0) return Busy{};
  return Busy{milliseconds(result.number(row, column))};
}

constexpr auto addKey = [](Array& array, const auto& each) { array.addBytes(each.claim.key); };
constexpr auto addToken = [](Array& array, const auto& each) { array.addBytes(bytesOf(each.claim.token)); };

constexpr auto addTtl = [](Array& array, const auto& each) { array.add(each.ttl.count()); };
constexpr const char* emptyArray = "{}";

std::uint32_t count(std::int64_t number) { return static_cast<std::uint32_t>(number); }

Holder holderIn(const Result& result, std::size_t row) {
  Holder holder{.owner = std::string(result.text(row, 1)),
                .remaining = milliseconds(result.number(row, 2)),
                .fence = static_cast<Fence>(result.number(row, 3)),
                .grantId = std::string(result.text(row, 4))};
  if (!result.isNull(row, 5))
    holder.share = Share{.weight = count(result.number(row, 5)), .limit = count(result.number(row, 6))};
  return holder;
}

}  // namespace

AcquireResult LockTable::claim(const AcquireRequest& request, const Place& place) {
  return sessions_.with(request.deadline, [&](Session& session) {
    return request.claim.share ? claimShare(session, request, place) : claimWhole(session, request, place);
  });
}

// The lease begins when there is a session: others may have used all of them for a while.
AcquireResult LockTable::claimWhole(Session& session, const AcquireRequest& request, const Place& place) {
  const Claim& claim = request.claim;
  const Value latest = session.latest(request.deadline);
  const Instant leasedFrom = sessions_.clock().now();
  const Statement claiming{
      texts_.claim,
      {key(claim.key), tokenOf(claim), std::string(claim.owner), std::int64_t{request.ttl.count()},
       std::int64_t{request.localHolders}, numberOf(leasedFrom), orNull(place), latest}};
  // One who has waited may lower the mark of the row, so the row is locked first.
  const Result result =
      place ? std::move(session
                            .transact(std::vector<Statement>{{texts_.lockRow, {key(claim.key)}}, claiming},
                                      request.deadline)
                            .back())
            : session.ask(claiming, request.deadline);
  // Without a row, the key's one is new: nobody has seen yet who has it.
  if (result.rows() == 0) return Busy{};
  if (result.isNull(0, 0)) return busyFor(result, 0, 2);
  const auto fences = count(result.number(0, 1));
  const auto last = static_cast<Fence>(result.number(0, 0));
  return Granted{.leasedFrom = leasedFrom,
                 .leasedFor = request.ttl,
                 .fence = fences == 0 ? last : last - fences + 1,
                 .localHolders = std::max(fences, 1U)};
}

AcquireResult LockTable::claimShare(Session& session, const AcquireRequest& request, const Place& place) {
  const Claim& claim = request.claim;
  const Share& share = *claim.share;
  const Value latest = session.latest(request.deadline);
  const Instant leasedFrom = sessions_.clock().now();
  const std::vector<Statement> statements{
      {texts_.makeRow, {key(claim.key)}},
      {texts_.lockRow, {key(claim.key)}},
      {texts_.claimShare,
       {key(claim.key), tokenOf(claim), std::string(claim.owner), std::int64_t{request.ttl.count()},
        std::int64_t{share.weight}, std::int64_t{share.limit}, numberOf(leasedFrom), orNull(place), latest}}};
  const std::vector<Result> results = session.transact(statements, request.deadline);
  const Result& result = results.back();
  if (result.rows() == 0) return Busy{};  // Somebody has deleted the row as unused.
  if (result.isTrue(0, 0)) return Granted{leasedFrom, request.ttl, static_cast<Fence>(result.number(0, 1))};
  const auto named = count(result.number(0, 2));
  if (named != 0 && named != share.limit) throwLimitsDisagree(claim.key, share, named);
  return busyFor(result, 0, 3);
}

std::vector<AcquireResult> LockTable::claimInOrder(std::span<const AcquireRequest> requests) {
  Instant leasedFrom;
  const std::vector<Result> results = sessions_.with(requests.front().deadline, [&](Session& session) {
    const Value latest = session.latest(requests.front().deadline);
    leasedFrom = sessions_.clock().now();
    const std::vector<Statement> statements{
        {texts_.stage,
         {arrayOf(requests, addKey), arrayOf(requests, addToken),
          arrayOf(requests, [](Array& array, auto& each) { array.addText(each.claim.owner); }),
          arrayOf(requests, addTtl), emptyArray}},
        {texts_.claimAll, {numberOf(leasedFrom), latest}},
        {texts_.undoRest}};
    return session.transact(statements, requests.front().deadline);
  });
  const Result& claimed = results[1];
  std::map<std::string, std::size_t, std::less<>> rows;
  for (std::size_t row = 0; row < claimed.rows(); ++row) rows.emplace(claimed.bytes(row, 0), row);
  std::vector<AcquireResult> answers;
  for (const AcquireRequest& each : requests) {
    const auto found = rows.find(each.claim.key);
    if (found == rows.end() || claimed.isNull(found->second, 1)) {
      answers.emplace_back(found == rows.end() ? Busy{} : busyFor(claimed, found->second, 2));
      break;
    }
    answers.emplace_back(Granted{leasedFrom, each.ttl, static_cast<Fence>(claimed.number(found->second, 1))});
  }
  return answers;
}

void LockTable::renew(std::span<Renewal* const> renewals, bool isShares, Instant deadline) {
  if (renewals.empty()) return;
  Instant leasedFrom;
  const std::vector<Result> results = sessions_.with(deadline, [&](Session& session) {
    leasedFrom = sessions_.clock().now();
    const auto each = [&](auto add) {
      return arrayOf(renewals, [&](Array& array, const Renewal* renewal) { add(array, *renewal); });
    };
    std::vector<Statement> statements{
        {texts_.stage,
         {each(addKey), each(addToken), emptyArray, each(addTtl),
          each([](Array& array, const Renewal& renewal) { array.add(renewal.atLeast ? 1 : 0); })}}};
    if (isShares) statements.push_back({texts_.lockRows});
    statements.push_back({isShares ? texts_.renewShares : texts_.renew, {numberOf(leasedFrom)}});
    if (isShares) statements.push_back({texts_.extendRows});
    return session.transact(statements, deadline);
  });
  const Result& renewed = results[isShares ? 2 : 1];
  std::map<std::string, RenewOutcome, std::less<>> outcomes;
  for (std::size_t row = 0; row < renewed.rows(); ++row)
    outcomes.emplace(renewed.text(row, 0),
                     renewed.isTrue(row, 1) ? RenewOutcome::renewed : RenewOutcome::unknown);
  for (Renewal* each : renewals) {
    const auto found = outcomes.find(each->claim.token.hex());
    each->outcome = found == outcomes.end() ? RenewOutcome::notOwner : found->second;
    each->leasedFrom = leasedFrom;
    each->leasedFor = each->ttl;
  }
}

bool LockTable::release(const Claim& claim, Instant deadline) {
  const Value itsKey = key(claim.key);
  if (!claim.share) return sessions_.ask({texts_.release, {itsKey, tokenOf(claim)}}, deadline).rows() != 0;
  const std::vector<Statement> statements{{texts_.lockRow, {itsKey}},
                                          {texts_.releaseShare, {itsKey, tokenOf(claim)}},
                                          {texts_.shrinkRow, {itsKey}}};
  return sessions_.transact(statements, deadline)[1].rows() != 0;
}

std::vector<ReleaseOutcome> LockTable::releaseAll(std::span<const Claim> claims, Instant deadline) {
  const std::vector<Statement> statements{
      {texts_.stage,
       {arrayOf(claims, [](Array& array, auto& each) { array.addBytes(each.key); }),
        arrayOf(claims, [](Array& array, auto& each) { array.addBytes(bytesOf(each.token)); }), emptyArray,
        emptyArray, emptyArray}},
      {texts_.releaseAll}};
  const std::vector<Result> results = sessions_.transact(statements, deadline);
  const Result& result = results.back();
  std::set<std::string, std::less<>> released;
  for (std::size_t row = 0; row < result.rows(); ++row) released.emplace(result.text(row, 0));
  std::vector<ReleaseOutcome> outcomes;
  for (const Claim& each : claims)
    outcomes.push_back(released.contains(each.token.hex()) ? ReleaseOutcome::released
                                                           : ReleaseOutcome::notOwner);
  return outcomes;
}

std::int64_t LockTable::enterQueue(const Claim& claim, bool isAhead, milliseconds stays, Instant deadline,
                                   bool isKept) {
  const auto weight = [&](std::uint32_t Share::*part) {
    return claim.share ? Value(std::int64_t{*claim.share.*part}) : Value(nullptr);
  };
  const std::int64_t length = stays.count();
  const std::vector<Result> results = sessions_.with(deadline, [&](Session& session) {
    const Value latest = session.latest(deadline);
    std::vector<Statement> statements;
    if (!isKept) statements.push_back({texts_.makeRow, {key(claim.key)}});
    // Newcomers lock the row before its waiters.
    statements.push_back({texts_.markRow, {key(claim.key), length, isKept ? "false" : "true"}});
    statements.push_back({texts_.enterQueue,
                          {key(claim.key), tokenOf(claim), std::string(claim.owner), weight(&Share::weight),
                           weight(&Share::limit), isAhead ? aheadOfAll : 0, length, latest}});
    return session.transact(statements, deadline);
  });
  if (results.back().rows() == 0)
    throw StoreUnavailable(sessions_.options().display + ": a request came too late to the server");
  return results.back().number(0, 0);
}

void LockTable::leaveQueue(const Claim& claim, Instant deadline) {
  const std::vector<Statement> statements{{texts_.lockRow, {key(claim.key)}},
                                          {texts_.leaveQueue, {key(claim.key), tokenOf(claim)}},
                                          {texts_.clearMark, {key(claim.key), tokenOf(claim)}}};
  sessions_.transact(statements, deadline);
}

std::vector<std::vector<Waiter>> LockTable::waiters(std::span<const std::string> keys, Instant deadline) {
  const Value wanted = arrayOf(keys, [](Array& array, auto& each) { array.addBytes(each); });
  const Result result = sessions_.ask({texts_.listWaiters, {wanted}}, deadline);
  std::map<std::string, std::vector<Waiter>> found;
  for (std::size_t row = 0; row < result.rows(); ++row) {
    std::vector<Waiter>& of = found[result.bytes(row, 0)];
    of.push_back({.owner = std::string(result.text(row, 1)), .waited = milliseconds(result.number(row, 2))});
    if (!result.isNull(row, 3))
      of.back().share = Share{.weight = count(result.number(row, 3)), .limit = count(result.number(row, 4))};
  }
  std::vector<std::vector<Waiter>> all;
  for (const std::string& each : keys) all.push_back(found[each]);
  return all;
}

std::vector<Holder> LockTable::holders(std::string_view itsKey, Instant deadline) {
  const Result result = sessions_.ask({texts_.holders, {key(itsKey)}}, deadline);
  std::vector<Holder> all;
  for (std::size_t row = 0; row < result.rows(); ++row) all.push_back(holderIn(result, row));
  return all;
}

// Those who share a key come one after the other; the page may end among them.
std::vector<LockTable::Held> LockTable::page(std::string_view prefix, std::string_view after,
                                             Instant deadline) {
  std::string last(prefix);  // Behind all keys that start with it.
  last.resize(std::max(prefix.size(), maxKeyBytes) + 1, '\xff');
  const Result result = sessions_.ask({texts_.page, {key(after), key(prefix), key(last)}}, deadline);
  std::vector<Held> page;
  for (std::size_t row = 0; row < result.rows(); ++row) {
    std::string itsKey = result.bytes(row, 0);
    if (page.empty() || page.back().key != itsKey) page.push_back({std::move(itsKey), holderIn(result, row)});
  }
  return page;
}

bool LockTable::breakLock(std::string_view itsKey, const Holder* shown, Instant deadline) {
  if (shown == nullptr || !shown->share) {
    const Value fence =
        shown != nullptr && shown->fence ? Value(static_cast<std::int64_t>(*shown->fence)) : Value(nullptr);
    if (sessions_.ask({texts_.breakWhole, {key(itsKey), fence}}, deadline).rows() != 0) return true;
    if (shown != nullptr) return false;
  }
  const Value grant = shown != nullptr ? Value(shown->grantId) : Value(nullptr);
  const std::vector<Statement> statements{{texts_.lockRow, {key(itsKey)}},
                                          {texts_.breakShares, {key(itsKey), grant}},
                                          {texts_.shrinkRow, {key(itsKey)}}};
  return sessions_.transact(statements, deadline)[1].rows() != 0;
}

bool LockTable::resize(std::string_view itsKey, std::uint32_t limit, Instant deadline) {
  return sessions_.ask({texts_.resize, {key(itsKey), std::int64_t{limit}}}, deadline).changed() != 0;
}

void LockTable::clearUnused(Instant deadline) {
  for (const std::string& each : texts_.clearUnused) sessions_.ask({each}, deadline);
}

}  // namespace lockkeeper::postgres
