#pragma once

#include <Poco/Util/AbstractConfiguration.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sms_gateway {

/// What sms_gateway.properties and the command line say, apart from what is lockkeeper's.
struct Settings {
  std::string store;  ///< Where the queue is: with locks and limits. May hold a password.
  std::string queue;  ///< What the queue's keys begin with.
  std::uint16_t port;
  std::size_t queueSize;
  std::chrono::milliseconds workerLease;
  std::string outbox;  ///< Empty: standard output.

  /// Throws lockkeeper::ConfigError for a key that is unknown or a value that is not allowed.
  static Settings read(const Poco::Util::AbstractConfiguration& config);
};

}  // namespace sms_gateway
