#pragma once

#include <memory>

#include "lockkeeper/poco/export.h"
#include "lockkeeper/poco/filter_hooks.h"
#include "lockkeeper/rate_limiter.h"

namespace Poco::Net {
class HTTPRequestHandlerFactory;
}
namespace Poco::Util {
class AbstractConfiguration;
}

namespace lockkeeper::poco {

namespace detail {
class FilterState;
}

/// Limits the requests of a Poco HTTP server as its configuration says, without a line in its handlers:
///
///     lockkeeper.limits.perPhone.rate            = 5/h
///     lockkeeper.http.routes.sms.match           = POST /sms
///     lockkeeper.http.routes.sms.limits.perPhone = json phone
///
/// docs/adapters.md lists all settings. A request must keep all limits of its route; one that is refused
/// charges none. It is answered with 429, or 503 where a limit is closed because its store is down. Requests
/// without a route pass. Thread-safe.
class LOCKKEEPER_POCO_EXPORT RateLimitFilter {
 public:
  /// Reads `lockkeeper.limits` and `lockkeeper.http`. Throws ConfigError that names the first setting that is
  /// unknown or not allowed.
  RateLimitFilter(std::shared_ptr<RateLimiter> limiter,
                  const Poco::Util::AbstractConfiguration& configuration, FilterHooks hooks = {});
  RateLimitFilter(RateLimitFilter&&) noexcept;
  RateLimitFilter& operator=(RateLimitFilter&&) noexcept;
  ~RateLimitFilter();

  /// Reads the settings anew. Requests that are on their way keep the old ones, those that come use the new
  /// ones; what is used of a limit stays used. Throws like the constructor, and then the old ones stay.
  void reload(const Poco::Util::AbstractConfiguration& configuration);

  /// A factory for Poco::Net::HTTPServer whose handlers ask the filter, and then those of `handlers`. The
  /// filter need not outlive it. A route with a limit by `json` gives its handlers a request whose body has
  /// been read into memory: the same to read, but not Poco's own HTTPServerRequestImpl.
  std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> wrap(
      std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> handlers);

 private:
  std::shared_ptr<detail::FilterState> state_;
};

}  // namespace lockkeeper::poco
