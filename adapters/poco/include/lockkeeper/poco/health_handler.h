#pragma once

#include <Poco/Net/HTTPRequestHandlerFactory.h>

#include <memory>
#include <string>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/poco/export.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/store/value_store.h"

namespace lockkeeper::poco {

/// What a process needs in order to be ready. Null parts are not asked. LockServices::healthParts() returns
/// the parts of the configuration.
struct HealthParts {
  std::shared_ptr<LockManager> locks{};
  std::shared_ptr<RateLimiter> limits{};
  std::shared_ptr<ValueStore> answers{};
};

/// Where serveHealth() answers.
struct HealthPaths {
  std::string live = "/health/live";
  std::string ready = "/health/ready";
};

/// A factory whose handlers tell an orchestrator the state of the process. Other requests go to `others`, or
/// get 404 if it is null:
///
///     Poco::Net::HTTPServer server(serveHealth(lockkeeper.healthParts(), std::move(handlers)).release(), …);
///
/// `live` is always 200: the process answers. `ready` is 200 if each store answers a request that changes
/// nothing and no lock is suspect, which means that all leases are renewed in time; otherwise 503. The body
/// is JSON and names the part, without addresses: {"status":"not
/// ready","parts":{"locks":"up","limits":"down"}, "suspectLocks":0}. The reason why a store is down goes to
/// Poco::Logger "lockkeeper.health", once an outage.
///
/// All callers share one probe, whose result is valid for a second, so probes never cause load. A caller
/// blocks for the ManagerOptions::operationTimeout, RateLimiterOptions::operationTimeout and one second for
/// the answers, plus an I/O timeout of each store, at most. GET and HEAD are allowed. Thread-safe. Throws
/// std::invalid_argument when all parts are null or the paths are the same.
LOCKKEEPER_POCO_EXPORT std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> serveHealth(
    HealthParts parts, std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> others = nullptr,
    HealthPaths paths = {});

}  // namespace lockkeeper::poco
