#include "version/lock_table.h"

#include <array>

#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"
#include "session/reply_fault.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::microseconds;
using Parameter = ServerSession::Parameter;

constexpr int keysOfPage = 500;

LockTable::Held heldIn(const Reply::Row& row) {
  LockTable::Held found{
      .key = row.at(0).value_or(""),
      .holder = {.owner = row.at(1).value_or(""),
                 .remaining = std::chrono::ceil<std::chrono::milliseconds>(microseconds(numberIn(row.at(3)))),
                 .fence = static_cast<Fence>(numberIn(row.at(2)))},
      .inShares = row.at(4) == "1"};
  if (row.at(5)) {
    found.holder.grantId = *row.at(5);
    found.holder.share = Share{.weight = static_cast<std::uint32_t>(numberIn(row.at(6))),
                               .limit = static_cast<std::uint32_t>(numberIn(row.at(7)))};
  }
  return found;
}

// What a claim of a share has for an owner in the table of locks; see isLoneOwner. Nothing if there is no
// room for it, and for the mark of a waiter.
std::string loneOwner(const Claim& claim) {
  constexpr std::size_t longest = 64;
  constexpr std::size_t longestMark = 17;
  const std::string text = std::string(claim.owner) + "@" + std::to_string(claim.share->weight) + "/" +
                           std::to_string(claim.share->limit);
  return text.size() + longestMark > longest ? std::string() : text + "@0";
}

LockTable::Answer answerIn(const Reply& reply, std::uint32_t fences) {
  if (reply.insertId == 0) throw ProtocolError("mysql+version: the server's answer to a claim has no fence");
  if (reply.insertId < foundMark) return LockTable::Fences{reply.insertId, fences};
  if (reply.insertId < busyMark) return LockTable::Fences{reply.insertId - foundMark};
  return microseconds(static_cast<std::int64_t>(reply.insertId - busyMark));
}

// "column IN (…)", of what `literalOf` makes of each claim.
template <class Claims, class LiteralOf>
std::string isOneOf(const char* column, const Claims& claims, LiteralOf literalOf) {
  std::string text = std::string(column) + " IN (";
  for (const auto& each : claims) text.append(text.back() == '(' ? "" : ",").append(literalOf(each));
  return text + ")";
}

// A row for each request, to be inserted: with its key and what `valuesOf` says.
template <class ValuesOf>
std::string rowsOf(std::span<const AcquireRequest> requests, ValuesOf valuesOf) {
  std::string text = " (lock_key, version, token, owner, expires_at) VALUES ";
  for (const AcquireRequest& each : requests) {
    text.append(&each == requests.data() ? "(" : ",(").append(hexLiteral(each.claim.key));
    text.append(",").append(valuesOf(each)).append(")");
  }
  return text + " ON DUPLICATE KEY UPDATE ";
}

}  // namespace

std::string LockTable::read(const std::string& table) { return "SELECT 1 FROM `" + table + "` LIMIT 0"; }

LockTable::Answer LockTable::claim(const Claim& claim, std::chrono::milliseconds ttl, std::uint32_t fences,
                                   LockTexts::Standing standing) {
  const std::string token = claim.token.hex();
  const std::int64_t more = std::int64_t{fences} - 1;
  const std::array<Parameter, 6> values{claim.key, more, token, claim.owner, microseconds(ttl).count(), more};
  return answerIn(session_.execute(texts_.as(standing).claim, values, deadline_), fences);
}

LockTable::Answer LockTable::claimLone(const Claim& claim, std::chrono::milliseconds ttl,
                                       LockTexts::Standing standing) {
  const std::string owner = loneOwner(claim);
  if (owner.empty()) return microseconds(0);
  const std::string token = claim.token.hex();
  const std::int64_t whole = claim.share->weight == claim.share->limit ? 1 : 0;
  const Reply& reply = session_.execute(
      texts_.as(standing).loneClaim,
      std::array<Parameter, 6>{claim.key, whole, token, owner, microseconds(ttl).count(), whole}, deadline_);
  return answerIn(reply, 1);
}

// Makes and locks the rows, finds the first busy key, and grants those before it.
std::vector<LockTable::Answer> LockTable::claimInOrder(std::span<const AcquireRequest> requests,
                                                       SessionPool& cancelling) {
  const auto keyOf = [](const AcquireRequest& each) { return hexLiteral(each.claim.key); };
  const auto tokenOf = [](const AcquireRequest& each) { return hexLiteral(each.claim.token.hex()); };
  const std::string insert = "INSERT INTO " + texts_.table;
  const std::string from = " FROM " + texts_.table + " WHERE " + isOneOf("lock_key", requests, keyOf);
  const std::string none = std::string(microsecondsNow) + ",'','',UTC_TIMESTAMP(6)";
  const std::string granted = "COALESCE(lock_key < @lk_busy, TRUE)";
  // Not what holds the row by now: if the server's clock has gone back since the first busy key was looked
  // for, a lease that had ended goes on, and its fence must not be given again.
  const std::string ours = "(" + std::string(isHeld) + " AND token = VALUES(token))";
  const Reply& reply = transact(
      insert + rowsOf(requests, [&](const AcquireRequest&) { return none; }) + "lock_key = lock_key;" +
          "SELECT MIN(lock_key) INTO @lk_busy" + from + " AND (" + isHeld + " AND NOT " +
          isOneOf("token", requests, tokenOf) + " OR NOT (" + isHeld + ") AND " + texts_.isClosed + ");" +
          insert +
          rowsOf(requests,
                 [&](const AcquireRequest& each) {
                   return "0," + tokenOf(each) + "," + hexLiteral(each.claim.owner) +
                          ",UTC_TIMESTAMP(6) + INTERVAL " + inMicroseconds(each.ttl) + " MICROSECOND";
                 }) +
          // From left to right, as in the claim of one key.
          "version = version + (" + granted + " AND NOT " + ours + "), " +                    //
          "expires_at = IF(" + granted + ", IF(" + ours +                                     //
          ", GREATEST(expires_at, VALUES(expires_at)), VALUES(expires_at)), expires_at), " +  //
          "token = IF(" + granted + ", VALUES(token), token), " +                             //
          "owner = IF(" + granted + ", VALUES(owner), owner);" + "SELECT version, IF(" + isHeld + ", " +
          remaining + ", " + inMicroseconds(priority) + "), lock_key = @lk_busy" + from +
          " AND COALESCE(lock_key <= @lk_busy, TRUE) ORDER BY lock_key",
      cancelling);
  std::vector<Answer> claimed;
  bool busy = false;
  for (const Reply::Row& row : reply.rows) {
    busy = row.at(2) == "1";
    if (busy) {
      claimed.emplace_back(microseconds(numberIn(row.at(1))));
    } else {
      claimed.emplace_back(Fences{static_cast<Fence>(numberIn(row.at(0)))});
    }
  }
  if (claimed.empty() || claimed.size() > requests.size() || (claimed.size() < requests.size() && !busy)) {
    throw ProtocolError(cancelling.display() + ": the server's answer does not tell of all keys");
  }
  return claimed;
}

bool LockTable::release(const Claim& claim) {
  const std::string token = claim.token.hex();
  return session_.execute(texts_.release, std::array<Parameter, 2>{claim.key, token}, deadline_).changed == 1;
}

std::string LockTable::stateOf(std::string_view key) {
  try {
    const Reply& reply = ask(std::string("SELECT IF(") + isHeld + ", token, ''), version FROM " +
                             texts_.table + " WHERE lock_key = " + hexLiteral(key));
    return reply.text(0) + "/" + reply.text(1);
  } catch (const OutcomeUnknown& lost) {
    throw StoreUnavailable(lost.what());  // it has asked for nothing
  }
}

void LockTable::unmark(std::string_view key, LockTexts::Standing standing) {
  const bool first = standing == LockTexts::Standing::first;
  ask("UPDATE " + texts_.table + " SET owner = " + texts_.unmarked + " WHERE lock_key = " + hexLiteral(key) +
      " AND " + texts_.isClosed + " AND owner " + (first ? "NOT LIKE" : "LIKE") + " '%@@%'");
}

// All rows stay locked, also those that are not ours, and the update looks at no others: it must not wait for
// a row while it has those behind it.
std::vector<bool> LockTable::releaseAll(std::span<const Claim> claims, SessionPool& cancelling) {
  const std::string table = texts_.table + " FORCE INDEX (PRIMARY)";
  const std::string keys =
      isOneOf("lock_key", claims, [](const Claim& each) { return hexLiteral(each.key); });
  const std::string ours =
      "expires_at > UTC_TIMESTAMP(6) AND " +
      isOneOf("token", claims, [](const Claim& each) { return hexLiteral(each.token.hex()); });
  const Tokens released = tokensIn(transact("SELECT IF(" + ours + ", token, '') FROM " + table + " WHERE " +
                                                keys + " ORDER BY lock_key FOR UPDATE;UPDATE " + table +
                                                " SET " + texts_.freed + " WHERE " + keys + " AND " + ours,
                                            cancelling));
  std::vector<bool> outcomes;
  for (const Claim& each : claims) outcomes.push_back(released.contains(each.token.hex()));
  return outcomes;
}

const Reply& LockTable::transact(const std::string& statements, SessionPool& cancelling) {
  while (true) {
    try {
      ask("START TRANSACTION");
    } catch (const OutcomeUnknown& lost) {
      throw StoreUnavailable(lost.what());  // nothing has been asked for yet
    }
    try {
      return session_.askOrCancel(statements + ";COMMIT", cancelling.latestCancel(deadline_), deadline_,
                                  cancelling);
    } catch (const RowDeadlock&) {
      // Those who wait for a row that is taken back, because who made it has died, may wait for each other.
      // What was undone is as if it had never been asked for, and one of them has gone on.
      if (session_.clock().now() >= deadline_) throw;
    }
  }
}

std::optional<LockTable::Held> LockTable::held(std::string_view key) {
  const Reply& reply = ask(heldWhere("lock_key = " + hexLiteral(key)));
  if (reply.rows.empty()) return std::nullopt;
  return heldIn(reply.rows.front());
}

std::vector<LockTable::Held> LockTable::page(std::string_view prefix, const std::string& after) {
  const std::string last = std::string(prefix) + std::string(maxKeyBytes, '\xff');
  const Reply& reply = ask(heldWhere("lock_key > " + hexLiteral(after) + " AND lock_key BETWEEN " +
                                     hexLiteral(prefix) + " AND " + hexLiteral(last)) +
                           " ORDER BY lock_key LIMIT " + std::to_string(keysOfPage));
  std::vector<Held> found;
  for (const Reply::Row& row : reply.rows) found.push_back(heldIn(row));
  return found;
}

bool LockTable::breakLock(std::string_view key, std::optional<Fence> version) {
  return ask("UPDATE " + texts_.table + " AS l SET " + texts_.freed + " WHERE lock_key = " + hexLiteral(key) +
             " AND " + isHeld + " AND NOT " + isShared + " AND NOT " + texts_.isLone +
             (version ? " AND version = " + std::to_string(*version) : ""))
             .changed == 1;
}

std::optional<LockTable::Tokens> LockTable::renewAll(Renewals renewals, SessionPool& cancelling) {
  if (askOrCancel(update(renewals), cancelling).changed == renewals.size()) return std::nullopt;
  return tokensIn(ask(select(renewals)));
}

std::string LockTable::update(Renewals renewals) const {
  return "UPDATE " + texts_.table + " SET expires_at = UTC_TIMESTAMP(6) + INTERVAL " + ttls(renewals) +
         " MICROSECOND WHERE expires_at > UTC_TIMESTAMP(6) AND " + anyOf(renewals);
}

std::string LockTable::select(Renewals renewals) const {
  return "SELECT token FROM " + texts_.table + " WHERE expires_at > UTC_TIMESTAMP(6) AND " + anyOf(renewals);
}

// The columns have names, because else the server would send their texts back.
std::string LockTable::heldWhere(const std::string& condition) const {
  const std::string ifLone = ", IF(" + texts_.isLone + ", ";
  return std::string("SELECT lock_key, IF(") + isShared + ", '', " + nameOfLone + ") AS name, version, " +
         remaining + " AS remaining, " + isShared + " AS shared" + ifLone +
         "LEFT(SHA2(token, 256), 16), NULL) AS id" + ifLone + weightOfLone + ", NULL) AS weight" + ifLone +
         limitOfLone + ", NULL) AS most FROM " + texts_.table + " AS l WHERE " + condition + " AND " + isHeld;
}

}  // namespace lockkeeper::mysql
