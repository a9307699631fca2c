#pragma once

#include <functional>
#include <string_view>

#include "lockkeeper/poco/client_options.h"
#include "lockkeeper/rate_decision.h"

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
  UserOf user{};  ///< For limits by `user`.

  /// For logs and metrics. Must be quick; what it throws is dropped. The report lives only during the call.
  std::function<void(const FilterReport& report)> report{};
};

}  // namespace lockkeeper::poco
