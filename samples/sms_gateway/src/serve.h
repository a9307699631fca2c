#pragma once

#include <functional>

#include "sample_application.h"

namespace sms_gateway {

/// Which parts of the gateway this process is.
struct Parts {
  bool server = true;
  bool worker = true;
};

using samples::Configuration;

/// Runs until SIGINT or SIGTERM. On SIGHUP the limits become what `readConfiguration` then returns; an error
/// there is reported, and the old ones stay.
void serve(Parts parts, const std::function<Configuration()>& readConfiguration);

}  // namespace sms_gateway
