#include <Poco/Util/AbstractConfiguration.h>

#include "config/setting.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/poco/request_locks.h"

namespace lockkeeper::poco {

RequestLockOptions readRequestLocks(const Poco::Util::AbstractConfiguration& configuration) {
  const std::string locks = "lockkeeper.http.locks";
  RequestLockOptions options;
  options.clients = readClients(configuration);
  for (const auto& name : namesBelow(configuration, locks)) {
    const std::string root = locks + "." + name;
    refuseUnknown(configuration, root, {"match", "by", "scope", "ttl", "waitFor", "maxHold"});
    LockedRoute route{.name = name,
                      .match = configuration.getString(root + ".match", ""),
                      .by = configuration.getString(root + ".by", ""),
                      .scope = configuration.getString(root + ".scope", "")};
    const auto read = [&](const std::string& setting, auto& option) {
      if (configuration.has(root + setting)) option = readDuration(configuration, root + setting, {});
    };
    read(".ttl", route.lock.ttl);
    read(".waitFor", route.lock.waitFor);
    read(".maxHold", route.lock.maxHold);
    options.routes.push_back(std::move(route));
  }
  return options;
}

}  // namespace lockkeeper::poco
