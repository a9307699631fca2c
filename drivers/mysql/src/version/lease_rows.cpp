#include "version/lease_rows.h"

#include <algorithm>
#include <map>
#include <vector>

#include "session/reply_fault.h"
#include "session/statements/held_rows.h"
#include "session/statements/sql_text.h"

namespace lockkeeper::mysql {
namespace {

// A server that is only slow takes less for an update.
constexpr std::chrono::milliseconds leastPatience{500};

}  // namespace

void LeaseRows::renew(Renewals renewals, SessionPool& cancelling) {
  try {
    const auto ours = renewAll(renewals, cancelling);
    for (Renewal* each : renewals) {
      each->outcome =
          !ours || ours->contains(each->claim.token.hex()) ? RenewOutcome::renewed : RenewOutcome::notOwner;
    }
  } catch (const Contention&) {
    if (renewals.size() == 1) throw;
    renewUnkept(renewals);
  }
}

void LeaseRows::renewUnkept(Renewals renewals) {
  const std::string looks = select(renewals);
  const std::string limit = idleLimit(longestIdle(session_.clock().now(), deadline_));
  const Tokens unkept = tokensIn(ask("START TRANSACTION;" + looks + " FOR UPDATE SKIP LOCKED;" + limit));
  std::vector<Renewal*> renewed;
  for (Renewal* each : renewals) {
    if (unkept.contains(each->claim.token.hex())) renewed.push_back(each);
  }
  const std::string updates = renewed.empty() ? "" : update(renewed) + ";";
  const Tokens ours = tokensIn(ask(noIdleLimit + (";" + updates) + "COMMIT;" + looks));
  for (Renewal* each : renewals) {
    const std::string token = each->claim.token.hex();
    if (!ours.contains(token)) {
      each->outcome = RenewOutcome::notOwner;
    } else if (unkept.contains(token)) {
      each->outcome = RenewOutcome::renewed;
    } else {
      each->outcome = RenewOutcome::unavailable;
      each->cause = "somebody else's transaction keeps the row of the lock";
    }
  }
}

const Reply& LeaseRows::askOrCancel(const std::string& statements, SessionPool& cancelling) {
  const auto patience = (deadline_ - session_.clock().now()) / 2;
  return patience < leastPatience
             ? ask(statements)
             : session_.askOrCancel(statements, deadline_ - patience, deadline_, cancelling);
}

LeaseRows::Tokens LeaseRows::tokensIn(const Reply& reply) {
  Tokens tokens;
  for (const Reply::Row& row : reply.rows) tokens.insert(row.at(0).value_or(""));
  return tokens;
}

std::string LeaseRows::anyOf(Renewals renewals, const std::string& prefix) {
  std::string text = "(";
  for (const Renewal* each : renewals) {
    text.append(each == renewals.front() ? "(" : " OR (").append(prefix).append("lock_key = ");
    text.append(hexLiteral(each->claim.key)).append(" AND ").append(prefix).append("token = ");
    text.append("'").append(each->claim.token.hex()).append("')");
  }
  return text + ")";
}

std::string LeaseRows::ttls(Renewals renewals) {
  std::map<std::chrono::milliseconds, std::string> tokensOf;
  for (const Renewal* each : renewals) {
    std::string& tokens = tokensOf[each->ttl];
    tokens.append(tokens.empty() ? "'" : ",'").append(each->claim.token.hex()).append("'");
  }
  if (tokensOf.size() == 1) return inMicroseconds(tokensOf.begin()->first);
  std::string text = "CASE";
  for (const auto& [ttl, tokens] : tokensOf) {
    text.append(" WHEN token IN (").append(tokens).append(") THEN ").append(inMicroseconds(ttl));
  }
  return text + " END";
}

}  // namespace lockkeeper::mysql
