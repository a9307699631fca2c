#pragma once

#include <Poco/Util/AbstractConfiguration.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lockkeeper/rate_policy.h"

namespace sms_gateway {

/// What sms_gateway.properties and the command line say, apart from what the filter reads.
struct Settings {
  std::string store;
  std::string keyNamespace;
  lockkeeper::RatePolicy sending;  ///< The rate of all workers together.
  std::uint16_t port;
  std::size_t queueSize;
  std::chrono::milliseconds workerLease;
  std::string outbox;  ///< Empty: standard output.

  /// Throws lockkeeper::ConfigError for a key that is unknown or a value that is not allowed.
  static Settings read(const Poco::Util::AbstractConfiguration& config);
};

}  // namespace sms_gateway
