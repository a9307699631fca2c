#include "http/route/route_table.h"

#include <algorithm>

#include "config/setting.h"
#include "config/setting_table.h"
#include "http/limit/rate_fields.h"
#include "http/route/route_list.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {
namespace {

using Poco::Util::AbstractConfiguration;

const std::string httpRoot = "lockkeeper.http";
const std::string routesRoot = httpRoot + ".routes";
constexpr std::size_t mostLimits = 16;  // what RateLimiter::take() takes at once

}  // namespace

RouteTable::RouteTable(const AbstractConfiguration& configuration, const UserOf& user)
    : policies_(readPolicies(configuration)),
      address_(readClients(configuration)),
      mostBodyBytes_(readNumber(configuration, httpRoot + ".maxBody", 16384, 1, 16U << 20)),
      dryRun_(readFlag(configuration, httpRoot + ".dryRun", false)) {
  refuseUnknown(configuration, httpRoot,
                {"trustedProxies", "ipv6Prefix", "maxBody", "dryRun", "routes", "locks", "idempotency"});
  for (const auto& name : namesBelow(configuration, routesRoot)) {
    routes_.push_back(readRoute(configuration, name, user));
  }
  sortRoutes(routes_);
}

const Route* RouteTable::find(std::string_view method, const std::vector<std::string>& path) const {
  return findRoute(routes_, method, path);
}

Route RouteTable::readRoute(const AbstractConfiguration& configuration, const std::string& name,
                            const UserOf& user) const {
  const std::string root = routesRoot + "." + name;
  refuseUnknown(configuration, root, {"match", "dryRun", "limits"});
  const std::string match = root + ".match";
  if (!configuration.has(match)) throw ConfigError(match + " is missing, such as " + match + " = POST /sms");
  Route route{.name = name,
              .pattern = RoutePattern::parse(match, configuration.getString(match)),
              .dryRun = readFlag(configuration, root + ".dryRun", dryRun_),
              .limits = {}};
  for (const auto& limit : namesBelow(configuration, root + ".limits")) {
    const std::string setting = root + ".limits." + limit;
    const auto policy = policies_.find(limit);
    if (policy == policies_.end()) {
      throw ConfigError(setting + " needs a limit of that name: lockkeeper.limits." + limit +
                        ".rate is missing");
    }
    route.limits.push_back({&policy->second, KeySource::parse(setting, configuration.getString(setting, ""),
                                                              route.pattern, user)});
    appendItem(route.policyField, policyItem(policy->second));
  }
  if (route.limits.empty() || route.limits.size() > mostLimits) {
    throw ConfigError(root + ".limits has " + std::to_string(route.limits.size()) +
                      " limits: 1 to 16 are allowed");
  }
  route.needsBody =
      std::ranges::any_of(route.limits, [](const RouteLimit& limit) { return limit.source.needsBody(); });
  return route;
}

}  // namespace lockkeeper::poco
