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

  /// Options that it does not name are the manager's; a request does not wait if neither names a waitFor. The
  /// lease is renewed unless `renew` says otherwise. `stop` is not used: the client that hangs up ends the
  /// wait.
  LockOptions lock{};
};

/// How a request under a lock did not go well.
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

/// How RequestLocks work. Values that are not allowed are refused by the constructor.
struct LOCKKEEPER_POCO_EXPORT RequestLockOptions {
  std::vector<LockedRoute> routes{};

  /// How many requests may wait for a busy lock at a time: 0 to 10,000. Each of them keeps a thread of the
  /// server. Default: half of HTTPServerParams::getMaxThreads(), and never all of them, whatever is set here.
  /// Requests beyond it do not wait: they are answered at once.
  std::optional<std::size_t> maxWaiting{};

  ClientOptions clients{};

  /// For logs and metrics, from the threads that serve requests. Must be quick; what it throws is dropped.
  /// Default: writes to Poco::Logger "lockkeeper.http".
  std::function<void(const RequestLockReport& report)> report{};

  /// Reads `lockkeeper.http`; docs/configuration.md lists the settings. Throws ConfigError that names the
  /// first setting that is unknown or not allowed.
  static RequestLockOptions fromConfiguration(const Poco::Util::AbstractConfiguration& configuration);

  /// The same from a configuration that was read before.
  static RequestLockOptions fromSettings(const Settings& settings);
};

/// Serves requests of a Poco HTTP server under locks: one at a time for each key, over all servers that share
/// the store. The lock ends when the handler has returned or thrown; the client may have read the answer just
/// before that. Thread-safe.
///
/// A busy lock is answered, after the route's waitFor, with 423; Retry-After is how long requests of the
/// route have held their locks lately, 1 to 60 s. A store that is down is answered with 503. A handler that
/// throws is answered with 500 (LockLost: 503), unless its answer was sent already; the exception then goes
/// on to the server's error handler. A lock that is lost while the handler runs changes nothing about its
/// answer: see currentLock().
class LOCKKEEPER_POCO_EXPORT RequestLocks final : public HttpFilter<RequestLockOptions> {
 public:
  /// Throws std::invalid_argument, naming the setting, for a route that no request can match and for
  /// everything else that is not allowed.
  RequestLocks(std::shared_ptr<LockManager> manager, RequestLockOptions options);

 private:
  class State;
  class Handler;
};

/// The lock under which the calling thread serves a request: the innermost one. Null outside of
/// RequestLocks and Idempotency. A handler asks it before each step that must not be done by two
/// (`currentLock()->valid()`), and gives its `fence()` to what it writes to. The Lock ends with the request:
/// other threads that the handler starts must have ended by then.
LOCKKEEPER_POCO_EXPORT Lock* currentLock() noexcept;

/// The same, for a handler whose request must have a lock. Throws LockLost, which is answered with 503, when
/// no route has matched, and when the lock is lost.
LOCKKEEPER_POCO_EXPORT Lock& requireCurrentLock();

}  // namespace lockkeeper::poco
