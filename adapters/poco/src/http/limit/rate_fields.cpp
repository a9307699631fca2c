#include "http/limit/rate_fields.h"

#include <algorithm>

namespace lockkeeper::poco {
namespace {

using std::chrono::microseconds;

// Names of policies have no character that a quoted string would have to escape.
std::string quotedName(const RatePolicy& policy) { return '"' + policy.name() + '"'; }

// In which time as much comes back.
microseconds windowOf(const RateLaw& law) {
  return isBucket(law.kind) ? roundedUp(law.lengthOf(law.limit)) : microseconds{law.period};
}

}  // namespace

std::int64_t wholeSeconds(microseconds length) {
  return std::chrono::ceil<std::chrono::seconds>(length).count();
}

std::string policyItem(const RatePolicy& policy) {
  const std::int64_t window = std::max<std::int64_t>(1, wholeSeconds(windowOf(policy.law())));
  return quotedName(policy) + ";q=" + std::to_string(policy.law().limit) + ";w=" + std::to_string(window);
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
    appendItem(list, quotedName(*take.policy) + ";r=" + std::to_string(decision.remaining) +
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
