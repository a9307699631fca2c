#pragma once

#include <Poco/AutoPtr.h>
#include <Poco/Util/AbstractConfiguration.h>

#include <functional>

#include "settings.h"

namespace sms_gateway {

/// Which parts of the gateway this process is.
struct Parts {
  bool server = true;
  bool worker = true;
};

using Configuration = Poco::AutoPtr<Poco::Util::AbstractConfiguration>;

/// Runs until SIGINT or SIGTERM. On SIGHUP the limits become what `readAgain` returns; an error there is
/// reported, and the old ones stay.
void serve(Parts parts, const Configuration& configuration, const std::function<Configuration()>& readAgain);

}  // namespace sms_gateway
