#include "route_table.h"

#include <algorithm>
#include <set>

#include "lockkeeper/error.h"
#include "lockkeeper/key.h"
#include "rate_fields.h"
#include "setting.h"

namespace lockkeeper::poco {
namespace {

using Poco::Util::AbstractConfiguration;

const std::string limitsRoot = "lockkeeper.limits";
const std::string httpRoot = "lockkeeper.http";
const std::string routesRoot = httpRoot + ".routes";
constexpr std::size_t mostLimits = 16;  // what RateLimiter::take() takes at once

}  // namespace

RouteTable::RouteTable(const AbstractConfiguration& configuration, const FilterHooks& hooks)
    : address_(httpRoot + ".trustedProxies", configuration.getString(httpRoot + ".trustedProxies", ""),
               readNumber(configuration, httpRoot + ".ipv6Prefix", 64, 1, 128)),
      mostBodyBytes_(readNumber(configuration, httpRoot + ".maxBody", 16384, 1, 16U << 20)),
      dryRun_(readFlag(configuration, httpRoot + ".dryRun", false)) {
  refuseUnknown(configuration, httpRoot, {"trustedProxies", "ipv6Prefix", "maxBody", "dryRun", "routes"});
  readPolicies(configuration);
  for (const auto& name : namesBelow(configuration, routesRoot)) {
    routes_.push_back(readRoute(configuration, name, hooks));
  }
  sortRoutes();
  refuseHiddenRoutes();
}

const Route* RouteTable::find(std::string_view method, const std::vector<std::string>& path) const {
  const auto found =
      std::ranges::find_if(routes_, [&](const Route& route) { return route.pattern.matches(method, path); });
  return found == routes_.end() ? nullptr : &*found;
}

void RouteTable::readPolicies(const AbstractConfiguration& configuration) {
  for (const auto& name : namesBelow(configuration, limitsRoot)) {
    std::map<std::string, std::string> settings;
    for (const auto& setting : namesBelow(configuration, limitsRoot + "." + name)) {
      settings[setting] = configuration.getString(limitsRoot + "." + name + "." + setting, "");
    }
    policies_.emplace(name, RatePolicy::parse(name, settings));
  }
}

Route RouteTable::readRoute(const AbstractConfiguration& configuration, const std::string& name,
                            const FilterHooks& hooks) const {
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
      throw ConfigError(setting + " needs a limit of that name: " + limitsRoot + "." + limit +
                        ".rate is missing");
    }
    route.limits.push_back({&policy->second, KeySource::parse(setting, configuration.getString(setting, ""),
                                                              route.pattern, hooks)});
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

void RouteTable::sortRoutes() {
  std::ranges::sort(routes_,
                    [](const Route& left, const Route& right) { return left.pattern.before(right.pattern); });
}

void RouteTable::refuseHiddenRoutes() const {
  std::size_t longest = 0;
  for (const Route& route : routes_) longest = std::max(longest, route.pattern.segments());
  for (const Route& route : routes_) {
    std::set<std::string> others;
    for (const auto& [method, path] : route.pattern.loneliest(longest + 1)) {
      others.insert(quoted(find(method, path)->name));
    }
    if (others.contains(quoted(route.name))) continue;
    std::string names;
    for (const std::string& other : others) names += (names.empty() ? "" : " and ") + other;
    throw ConfigError("no request can match the route " + quoted(route.name) +
                      ": what it would match goes to " + names);
  }
}

}  // namespace lockkeeper::poco
