#include "http/limit/rate_fields.h"

#include <algorithm>

namespace lockkeeper::poco {
namespace {

using std::chrono::microseconds;

// Names of policies have no character that a quoted string would have to escape.
std::string quotedName(const RatePolicy& policy) { return '"' + policy.name() + '"'; }

// What may be taken at once without a wait: of a queue, its next slot.
std::int64_t quotaOf(const RateLaw& law) { return law.kind == RateKind::leakyQueue ? 1 : law.limit; }

// In which time as much comes back.
microseconds windowOf(const RateLaw& law) {
  return isBucket(law.kind) ? roundedUp(law.lengthOf(quotaOf(law))) : microseconds{law.period};
}

}  // namespace

std::int64_t wholeSeconds(microseconds length) {
  return std::chrono::ceil<std::chrono::seconds>(length).count();
}

std::string policyItem(const RatePolicy& policy) {
  const std::int64_t window = std::max<std::int64_t>(1, wholeSeconds(windowOf(policy.law())));
  return quotedName(policy) + ";q=" + std::to_string(quotaOf(policy.law())) + ";w=" + std::to_string(window);
}

void appendItem(std::string& field, const std::string& item) {
  field.append(field.empty() ? "" : ", ").append(item);
}

std::string limitField(std::span<const RateTake> takes, bool allowed) {
  std::string list;
  for (const RateTake& take : takes) {
    const Decision& decision = take.decision;
    if (decision.outage || (!allowed && decision.allowed)) continue;
    const microseconds window = allowed ? decision.resetAfter : decision.retryAfter;
    const bool queues = take.policy->law().kind == RateKind::leakyQueue;
    const std::int64_t left = queues ? 0 : decision.remaining;  // the next slot is taken by now
    appendItem(list, quotedName(*take.policy) + ";r=" + std::to_string(left) +
                         ";t=" + std::to_string(wholeSeconds(window)));
  }
  return list;
}

std::int64_t retryAfter(std::span<const RateTake> takes) {
  std::int64_t seconds = 1;
  for (const RateTake& take : takes) {
    if (!take.decision.allowed) seconds = std::max(seconds, wholeSeconds(take.decision.retryAfter));
  }
  return seconds;
}

}  // namespace lockkeeper::poco
