#include "settings.h"

#include "lockkeeper/duration.h"
#include "sample_settings.h"

namespace sms_gateway {

using Poco::Util::AbstractConfiguration;
using samples::numberOf;

Settings Settings::read(const AbstractConfiguration& config) {
  samples::refuseUnknown(config, "smsGateway", {"port", "queueSize", "workerLease", "outbox"});
  return {.store = config.getString("lockkeeper.store"),
          .queue = config.getString("lockkeeper.namespace", "sms"),
          .port = static_cast<std::uint16_t>(numberOf(config, "smsGateway.port", 8080, 0, 65535)),
          .queueSize = numberOf(config, "smsGateway.queueSize", 1000, 1, 1'000'000),
          .workerLease = lockkeeper::parseDuration("smsGateway.workerLease",
                                                   config.getString("smsGateway.workerLease", "10s")),
          .outbox = config.getString("smsGateway.outbox", "")};
}

}  // namespace sms_gateway
