#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "lockkeeper/driver/driver.h"
#include "wire/protocol/redirect.h"

namespace lockkeeper::redis {

/// A capability of a RedisDriver, for the driver of a cluster: calls that go on at another node.
class NodeCalls {
 public:
  virtual ~NodeCalls() = default;

  /// As LockDriver::renew(). For each renewal that the server has refused because another node has the key's
  /// slot, or will have it, writes that to its place in `redirects`, which has one for each renewal, or none
  /// at all.
  virtual void renew(std::span<Renewal> renewals, std::span<std::optional<Redirect>> redirects,
                     Instant deadline) = 0;

  /// As Waitable::acquireWaiting(). `ticket` is the place in the queue, empty as long as there is none; after
  /// an error, a claim that has one may still be in the queue, wherever that is. Throws Redirected when that
  /// is on another node now.
  virtual AcquireResult wait(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                             const std::stop_token& stop, std::string& ticket) = 0;

  /// Throws when the server does not answer, or is no master.
  virtual void ping(Instant deadline) = 0;
};

}  // namespace lockkeeper::redis
