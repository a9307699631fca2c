#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "limit/rates.h"
#include "lock/node/replica_count.h"
#include "lock/node/rights.h"
#include "lock/permit_calls.h"
#include "lockkeeper/driver/driver.h"
#include "queue/wait_queue.h"
#include "store/redis_store.h"
#include "wire/protocol/redirect.h"

namespace lockkeeper::redis {

class ClaimsUnderWay;

/// The locks and limits of one server. The operations are those of the driver's interfaces, for keys that the
/// server has; on a cluster, they throw Redirected for others. Thread-safe.
class LockNode : public RedisStore {
 public:
  using Visit = std::function<bool(std::string_view key, const Holder& holder)>;
  using Wanted = std::function<bool(std::string_view key)>;

  /// `onDoubt` is called when the server is another one than before, or has restarted. It must not block.
  LockNode(const RedisOptions& options, const Environment& environment, std::function<void()> onDoubt);

  AcquireResult acquire(const AcquireRequest& request);
  std::vector<AcquireResult> acquireInOrder(std::span<const AcquireRequest> requests);
  /// As acquireInOrder() for each of the groups, of which there is one at least and each has keys of one
  /// slot, but only sends them. Throws when nothing was sent.
  std::unique_ptr<ClaimsUnderWay> sendInOrder(std::vector<std::vector<AcquireRequest>> groups);
  /// `ticket` is the place in the queue, empty as long as there is none; after an error, a claim that has one
  /// may still be in the queue, wherever that is.
  AcquireResult acquireWaiting(const AcquireRequest& request, Instant until, const std::stop_token& stop,
                               std::string& ticket);

  /// For each renewal that the server has refused because another node has the key's slot, or will have it,
  /// writes that to its place in `redirects`, which has one for each renewal, or none at all.
  void renew(std::span<Renewal> renewals, std::span<std::optional<Redirect>> redirects, Instant deadline);
  ReleaseOutcome release(const Claim& claim, Instant deadline);
  bool postRelease(const Claim& claim, std::shared_ptr<PostListener> listener);

  std::optional<Holder> holder(std::string_view key, Instant deadline);
  /// Without the locks of foreign clients, which look like any other string.
  void list(std::string_view prefix, const Visit& visit, Instant deadline);
  std::string listBusy(std::string_view place, const Wanted& wanted, const Visit& visit, Instant deadline);

  /// Releases the grants that `wire` has brought, and throws, when too few replicas have them.
  void checkReplicas(std::span<const AcquireRequest> granted, const Request& wire);

  WaitQueue queue{*this};
  PermitCalls permits{*this};
  Rates rates{*this};

 private:
  AcquireResult attempt(const AcquireRequest& request, Request& wire);
  AcquireResult setResult(const Request& request, std::chrono::milliseconds ttl);
  RenewOutcome renewed(const Request& request, std::size_t index);
  void checkReplicas(std::span<Renewal> renewals, std::uint64_t connection, Instant deadline);
  void addHolder(Request& request, Script::By by, std::string_view key, bool withFence = true) const;
  std::optional<Holder> holderIn(const Request& request, std::size_t index, bool oursOnly);
  bool visitHolders(std::span<const std::string_view> keys, bool oursOnly, const Visit& visit,
                    Instant deadline);

  Rights rights_{*this};
  ReplicaCount replicas_{*this};
};

}  // namespace lockkeeper::redis
