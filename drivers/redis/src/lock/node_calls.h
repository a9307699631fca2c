#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

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

  /// Claims that were sent to the node, in groups of keys of one slot. Its end does not wait for their
  /// outcome.
  class ClaimsUnderWay {
   public:
    /// What Batchable::acquireInOrder() returns or throws for one group.
    struct Outcome {
      std::vector<AcquireResult> results{};
      std::exception_ptr failure{};
    };

    virtual ~ClaimsUnderWay() = default;

    /// Waits for the outcome of each group. Once.
    virtual std::vector<Outcome> await() = 0;
  };

  /// As Batchable::acquireInOrder() for each of the groups, of which there is one at least, but only sends
  /// them. Throws when nothing was sent.
  virtual std::unique_ptr<ClaimsUnderWay> sendInOrder(std::vector<std::vector<AcquireRequest>> groups) = 0;

  /// Throws when the server does not answer, or is no master.
  virtual void ping(Instant deadline) = 0;
};

}  // namespace lockkeeper::redis
