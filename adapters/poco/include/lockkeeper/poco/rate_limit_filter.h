#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/poco/client_options.h"
#include "lockkeeper/poco/export.h"
#include "lockkeeper/poco/http_filter.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/rate_policy.h"

namespace Poco::Util {
class AbstractConfiguration;
}

namespace lockkeeper::poco {

struct Settings;

/// Requests that must keep limits.
struct LimitedRoute {
  std::string name{};   ///< [A-Za-z0-9_.-]{1,64}.
  std::string match{};  ///< "METHOD /path", such as "POST /sms" or "* /orders/{id}".

  /// 1 to 16 limits, by their names in RateLimitOptions::policies, with what each counts by: "all",
  /// "address", "user", "header NAME", "cookie NAME", "query NAME", "json NAME" or "path NAME". These last
  /// five may be followed by forms into which the value is brought, and by "plain" or "hash", which say how
  /// the key shows it: "json phone | e164", "header X-Tenant | plain" (docs/http-limits.md).
  std::map<std::string, std::string> limits{};

  /// Nothing is refused, but use is counted and refusals are reported. Default: RateLimitOptions::dryRun.
  std::optional<bool> dryRun{};
};

/// A request that was refused, or was decided without the store. Lives only during the call.
struct RateLimitReport {
  std::string_view route;
  const Decision& decision;  ///< Of the limit that decided; its `policy` names it.
  bool dryRun = false;       ///< The request was let through whatever the decision.
  std::string_view trace{};  ///< The trace-id of its `traceparent` (W3C Trace Context), if that is valid.

  /// What that limit counts by, as the route says it but without forms: "address" or "json phone".
  std::string_view source{};

  /// The value that it has counted, in printable ASCII: "#all" for all requests together, "#none" for a
  /// request without the value, "#" and 32 hexadecimal digits for a hash: of a header or a cookie that is not
  /// "plain", of what is to be a "hash", of a value of more than 64 bytes and of one that could pass for
  /// something else. It may be personal, such as a telephone number.
  std::string_view key{};
};

/// How a RateLimitFilter works. Its constructor refuses values that are not allowed.
struct LOCKKEEPER_POCO_EXPORT RateLimitOptions {
  std::map<std::string, RatePolicy, std::less<>> policies{};  ///< By their names.
  std::vector<LimitedRoute> routes{};
  bool dryRun = false;  ///< For all routes that do not set it themselves.

  /// Longest body, in bytes, on routes with a limit by "json": 1 to 16 MiB. Longer: 413.
  std::size_t maxBody = 16384;

  /// How long such a body may take to arrive, during which it occupies a thread of the server: 10 ms to 1 h.
  /// Longer: 408.
  std::chrono::milliseconds bodyTimeout{std::chrono::seconds{10}};

  ClientOptions clients{};

  /// For logs and metrics. Called on the threads that serve requests; must be quick; what it throws is
  /// ignored. Default: writes to Poco::Logger "lockkeeper.http".
  std::function<void(const RateLimitReport& report)> report{};

  /// Reads `lockkeeper.http` and `lockkeeper.limits`; docs/configuration.md lists the settings. Throws
  /// ConfigError that names the first setting that is unknown or not allowed.
  static RateLimitOptions fromConfiguration(const Poco::Util::AbstractConfiguration& configuration);

  /// The same from a configuration that was read before.
  static RateLimitOptions fromSettings(const Settings& settings);
};

/// Limits the requests of a Poco HTTP server, without a line in its handlers:
///
///     lockkeeper.limits.perPhone.rate            = 5/h
///     lockkeeper.http.routes.sms.match           = POST /sms
///     lockkeeper.http.routes.sms.limits.perPhone = json phone
///
/// A request must keep all limits of its route; a request that is refused charges none of them. The answer is
/// 429, or 503 if a limit is closed because its store is down. Requests without a route pass. The filter
/// never waits, so no limit of a route may be a leaky-queue. Thread-safe.
///
/// On a route with a limit by "json", the body is read into memory. The handler's request then reads the
/// same, but is not Poco's own HTTPServerRequestImpl.
class LOCKKEEPER_POCO_EXPORT RateLimitFilter final : public HttpFilter<RateLimitOptions> {
 public:
  /// Throws std::invalid_argument, naming the setting, for a route that no request can match and for
  /// everything else that is not allowed.
  RateLimitFilter(std::shared_ptr<RateLimiter> limiter, RateLimitOptions options);

 private:
  class State;
  class Handler;
};

}  // namespace lockkeeper::poco
