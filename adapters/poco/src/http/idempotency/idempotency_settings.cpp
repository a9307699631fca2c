#include <Poco/StringTokenizer.h>
#include <Poco/Util/AbstractConfiguration.h>

#include "config/setting.h"
#include "lockkeeper/poco/idempotency.h"

namespace lockkeeper::poco {

namespace {

using Poco::StringTokenizer;
using Poco::Util::AbstractConfiguration;

IdempotentRoute readRoute(const AbstractConfiguration& configuration, const std::string& root,
                          const std::string& name) {
  refuseUnknown(configuration, root, {"match", "client", "required", "keepFor", "ttl"});
  IdempotentRoute route{.name = name, .match = configuration.getString(root + ".match", "")};
  route.client = configuration.getString(root + ".client", route.client);
  route.required = readFlag(configuration, root + ".required", route.required);
  route.keepFor = readDuration(configuration, root + ".keepFor", route.keepFor);
  route.ttl = readDuration(configuration, root + ".ttl", route.ttl);
  return route;
}

}  // namespace

IdempotencyOptions readIdempotency(const AbstractConfiguration& configuration) {
  const std::string root = "lockkeeper.http.idempotency";
  refuseUnknown(configuration, root, {"methods", "maxBody", "maxAnswer", "routes"});
  IdempotencyOptions options;
  if (configuration.has(root + ".methods")) {
    const StringTokenizer methods(configuration.getString(root + ".methods"), ",", StringTokenizer::TOK_TRIM);
    options.methods = {methods.begin(), methods.end()};
  }
  options.maxBody = readNumber(configuration, root + ".maxBody", 1U << 20, 1, 16U << 20);
  options.maxAnswer = readNumber(configuration, root + ".maxAnswer", 1U << 20, 1024, 1U << 20);
  options.clients = readClients(configuration);
  options.keyNamespace = configuration.getString("lockkeeper.namespace", "");
  for (const auto& name : namesBelow(configuration, root + ".routes")) {
    options.routes.push_back(readRoute(configuration, root + ".routes." + name, name));
  }
  return options;
}

}  // namespace lockkeeper::poco
