#include "settings.h"

#include <Poco/NumberParser.h>

#include <algorithm>
#include <array>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"

namespace sms_gateway {
namespace {

using lockkeeper::ConfigError;
using lockkeeper::quoted;
using Poco::Util::AbstractConfiguration;

void refuseUnknown(const AbstractConfiguration& config) {
  constexpr std::array known{"port", "queueSize", "workerLease", "outbox"};
  AbstractConfiguration::Keys keys;
  config.keys("smsGateway", keys);
  for (const auto& key : keys) {
    if (std::ranges::find(known, key) == known.end()) throw ConfigError("unknown setting smsGateway." + key);
  }
}

unsigned number(const AbstractConfiguration& config, const std::string& key, unsigned otherwise,
                unsigned least, unsigned most) {
  const std::string text = config.getString(key, std::to_string(otherwise));
  unsigned value = 0;
  if (Poco::NumberParser::tryParseUnsigned(text, value) && value >= least && value <= most) return value;
  throw ConfigError(key + " is " + quoted(text) + ": " + std::to_string(least) + " to " +
                    std::to_string(most) + " are allowed");
}

}  // namespace

Settings Settings::read(const AbstractConfiguration& config) {
  refuseUnknown(config);
  return {.store = config.getString("lockkeeper.store"),
          .queue = config.getString("lockkeeper.namespace", "sms"),
          .port = static_cast<std::uint16_t>(number(config, "smsGateway.port", 8080, 0, 65535)),
          .queueSize = number(config, "smsGateway.queueSize", 1000, 1, 1'000'000),
          .workerLease = lockkeeper::parseDuration("smsGateway.workerLease",
                                                   config.getString("smsGateway.workerLease", "10s")),
          .outbox = config.getString("smsGateway.outbox", "")};
}

}  // namespace sms_gateway
