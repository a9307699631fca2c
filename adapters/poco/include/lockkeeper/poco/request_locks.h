#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/poco/client_options.h"
#include "lockkeeper/poco/export.h"
#include "lockkeeper/poco/http_filter.h"

namespace Poco::Util {
class AbstractConfiguration;
}

namespace lockkeeper::poco {

struct Settings;

/// Requests that are served one at a time for each key.
struct LockedRoute {
  std::string name{};   ///< [A-Za-z0-9_.-]{1,64}.
  std::string match{};  ///< As of RateLimitFilter's routes, such as "PUT /orders/{id}".

  /// What the key is made of: 1 to 4 of "path NAME", "header NAME", "cookie NAME", "query NAME", "address",
  /// "user", with commas between them; or "all". The first four may be followed by forms, as in
  /// "header X-Tenant | plain" (docs/http-limits.md). Requests without the value share one key.
  std::string by{};

  /// The first part of the key; "" for `name`. Routes with one scope share their locks. The key is
  /// SCOPE/VALUE, such as order/42, for whoever else wants to take it. Of a header or a cookie, which may be
  /// a credential, VALUE is a hash unless `by` says "plain": docs/http-locks.md.
  std::string scope{};

  /// Options that are not set here are the manager's; a request does not wait if neither sets a waitFor. The
  /// lease is renewed unless `renew` says otherwise. `stop` is not used: the wait ends when the client hangs
  /// up.
  LockOptions lock{};
};

/// What can go wrong with a request under a lock.
enum class RequestLockFault {
  busy,       ///< Answered with 423.
  storeDown,  ///< Answered with 503.
  hungUp,     ///< The client hung up while it waited; its handler did not run.
  lost,       ///< The lock was lost while the handler ran.
};

/// Lives only during the call.
struct RequestLockReport {
  std::string_view route;
  std::string_view key;
  RequestLockFault fault;
  std::string_view message{};  ///< Of storeDown: why. Of busy: why it did not wait, if it should have.
  std::string_view trace{};    ///< The trace-id of its `traceparent` (W3C Trace Context), if that is valid.
};

/// How RequestLocks work. The constructor refuses values that are not allowed.
struct LOCKKEEPER_POCO_EXPORT RequestLockOptions {
  std::vector<LockedRoute> routes{};

  /// How many requests may wait for a busy lock at a time: 0 to 10,000. Each of them occupies a thread of the
  /// server. Default: half of HTTPServerParams::getMaxThreads(); it is never all of these threads, whatever
  /// is set here. Further requests do not wait, but are answered at once.
  std::optional<std::size_t> maxWaiting{};

  ClientOptions clients{};

  /// For logs and metrics. Called on the threads that serve requests; must be quick; what it throws is
  /// ignored. Default: writes to Poco::Logger "lockkeeper.http".
  std::function<void(const RequestLockReport& report)> report{};

  /// Reads `lockkeeper.http`; docs/configuration.md lists the settings. Throws ConfigError that names the
  /// first setting that is unknown or not allowed.
  static RequestLockOptions fromConfiguration(const Poco::Util::AbstractConfiguration& configuration);

  /// The same from a configuration that was read before.
  static RequestLockOptions fromSettings(const Settings& settings);
};

/// Serves requests of a Poco HTTP server under locks: one at a time for each key, among all servers that
/// share the store. The lock ends when the handler has returned or thrown, which may be just after the client
/// has read the answer. Thread-safe.
///
/// If the lock stays busy for the route's waitFor, the answer is 423; Retry-After is how long requests of the
/// route have lately held their locks, 1 to 60 s. If the store is down, the answer is 503. If the handler
/// throws, it is 500 (LockLost: 503) unless an answer was sent already; the exception then reaches the
/// server's error handler. If the lock is lost while the handler runs, that alone does not change the answer:
/// see currentLock().
class LOCKKEEPER_POCO_EXPORT RequestLocks final : public HttpFilter<RequestLockOptions> {
 public:
  /// Throws std::invalid_argument, naming the setting, for a route that no request can match and for
  /// everything else that is not allowed.
  RequestLocks(std::shared_ptr<LockManager> manager, RequestLockOptions options);

 private:
  class State;
  class Handler;
};

/// The lock under which the calling thread serves a request; if there are several, the innermost one. Null
/// outside of RequestLocks and Idempotency. A handler checks `currentLock()->valid()` before each step that
/// must not be done twice, and sends `fence()` to what it writes to. The Lock ends with the request: other
/// threads that the handler starts must have ended by then.
LOCKKEEPER_POCO_EXPORT Lock* currentLock() noexcept;

/// The same, for a handler whose request must have a lock. Throws LockLost, whose answer is 503, when no
/// route matched the request, and when the lock is lost.
LOCKKEEPER_POCO_EXPORT Lock& requireCurrentLock();

}  // namespace lockkeeper::poco
