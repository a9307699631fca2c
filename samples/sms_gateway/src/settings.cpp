#include "settings.h"

#include <algorithm>
#include <map>

#include <Poco/NumberParser.h>

#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/key.h"

namespace sms_gateway {
namespace {

using lockkeeper::ConfigError;
using lockkeeper::quoted;
using Poco::Util::AbstractConfiguration;

const std::string sendingLimit = "lockkeeper.limits.sending";

AbstractConfiguration::Keys keysBelow(const AbstractConfiguration& config, const std::string& root) {
  AbstractConfiguration::Keys keys;
  config.keys(root, keys);
  return keys;
}

void refuseUnknown(const AbstractConfiguration& config, const std::string& root,
                   std::initializer_list<std::string_view> known) {
  for (const auto& key : keysBelow(config, root)) {
    if (std::ranges::find(known, key) != known.end()) continue;
    throw ConfigError("unknown setting " + quoted(root + "." + key));
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

lockkeeper::RatePolicy readSending(const AbstractConfiguration& config) {
  std::map<std::string, std::string> settings;
  for (const auto& key : keysBelow(config, sendingLimit)) {
    settings[key] = config.getString(sendingLimit + "." + key);
  }
  lockkeeper::RatePolicy policy = lockkeeper::RatePolicy::parse("sending", settings);
  if (policy.law().kind == lockkeeper::RateKind::leakyQueue) return policy;
  throw ConfigError(sendingLimit + ".kind must be leaky-queue, since messages wait for their turn");
}

}  // namespace

Settings Settings::read(const AbstractConfiguration& config) {
  refuseUnknown(config, "lockkeeper", {"store", "namespace", "limits", "http"});
  refuseUnknown(config, "smsGateway", {"port", "queueSize", "workerLease", "outbox"});
  // Raw, because ${NAME} in a URI is not one of Poco's references to another setting.
  const std::string store = "lockkeeper.store";
  return {.store = config.has(store) ? config.getRawString(store) : "memory:",
          .keyNamespace = config.getString("lockkeeper.namespace", "sms"),
          .sending = readSending(config),
          .port = static_cast<std::uint16_t>(number(config, "smsGateway.port", 8080, 0, 65535)),
          .queueSize = number(config, "smsGateway.queueSize", 1000, 1, 1'000'000),
          .workerLease = lockkeeper::parseDuration("smsGateway.workerLease",
                                                   config.getString("smsGateway.workerLease", "10s")),
          .outbox = config.getString("smsGateway.outbox", "")};
}

}  // namespace sms_gateway
