#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "lockkeeper/rate_decision.h"

namespace Poco::Net {
class HTTPServerRequest;
}

namespace lockkeeper::poco {

/// A request that was refused, or was decided without the store.
struct FilterReport {
  std::string_view route;    ///< Its name in the configuration.
  const Decision& decision;  ///< Of the limit that decided; its `policy` names it.
  bool dryRun = false;       ///< The request was let through whatever the decision.
};

/// What a filter asks of the application and tells it, from the threads that serve requests, several at a
/// time.
struct FilterHooks {
  /// Who sends the request, for limits by `user`: any bytes that tell users apart. What it throws is answered
  /// by the server, as if the handler had thrown it.
  std::function<std::string(const Poco::Net::HTTPServerRequest& request)> user{};

  /// For logs and metrics. Must be quick; what it throws is dropped. The report lives only during the call.
  std::function<void(const FilterReport& report)> report{};
};

}  // namespace lockkeeper::poco
