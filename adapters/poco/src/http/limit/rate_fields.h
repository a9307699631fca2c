#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "lockkeeper/rate_limiter.h"

namespace lockkeeper::poco {

// The header fields of draft-ietf-httpapi-ratelimit-headers-11, which are lists of RFC 9651.

/// Rounded up, so that who waits so long does not come too early.
std::int64_t wholeSeconds(std::chrono::microseconds length);

/// RateLimit-Policy, one item of it: what a limit allows (q) in which time (w).
std::string policyItem(const RatePolicy& policy);

/// Appends an item to a field.
void appendItem(std::string& field, const std::string& item);

/// RateLimit: what is left of each limit (r) for how long (t). On a refusal only of those that refuse, so
/// that Retry-After is not before the end of any t. Empty when the store has told nothing.
std::string limitField(std::span<const RateTake> takes, bool allowed);

/// Retry-After: when all limits that refuse may allow the request; at least 1.
std::int64_t retryAfter(std::span<const RateTake> takes);

}  // namespace lockkeeper::poco
