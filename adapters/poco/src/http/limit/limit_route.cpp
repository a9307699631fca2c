#include "http/limit/limit_route.h"

#include <algorithm>

#include "http/limit/rate_fields.h"
#include "http/request_body.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/internal/check_range.h"
#include "lockkeeper/poco/settings.h"

namespace lockkeeper::poco {
namespace {

constexpr auto limitsRoot = "lockkeeper.http";
constexpr std::size_t mostLimits = 16;  // what RateLimiter::take() takes at once

}  // namespace

void checkFilter(const RateLimitOptions& options) {
  checkRange(limitsRoot + std::string(".maxBody"), options.maxBody, 1, mostBody);
  checkDuration<>(limitsRoot + std::string(".bodyTimeout"), options.bodyTimeout, shortestBodyTimeout,
                  longestBodyTimeout);
}

LimitRoute LimitRoute::of(const LimitedRoute& given, const RateLimitOptions& options) {
  checkName(std::string("a name in ") + limitsRoot + ".routes", given.name);
  const std::string here = limitsRoot + std::string(".routes.") + given.name;
  if (given.match.empty()) {
    throw std::invalid_argument(here + ".match is missing, such as " + here + ".match = POST /sms");
  }
  LimitRoute route{.name = given.name,
                   .pattern = RoutePattern::parse(here + ".match", given.match),
                   .dryRun = given.dryRun.value_or(options.dryRun)};
  for (const auto& [limit, source] : given.limits) {
    const std::string setting = here + ".limits." + limit;
    const auto policy = options.policies.find(limit);
    if (policy == options.policies.end()) {
      throw std::invalid_argument(setting + " needs a limit of that name: lockkeeper.limits." + limit +
                                  ".rate is missing");
    }
    if (policy->second.law().kind == RateKind::leakyQueue) {
      throw std::invalid_argument(setting +
                                  " names a leaky-queue, in which callers wait for their turn, and a "
                                  "filter never waits: lockkeeper.limits." +
                                  limit + ".kind = leaky-meter limits to the same rate");
    }
    route.limits.push_back(
        {&policy->second, KeySource::parse(setting, source, route.pattern, options.clients.user)});
    appendItem(route.policyField, policyItem(policy->second));
  }
  if (route.limits.empty() || route.limits.size() > mostLimits) {
    throw std::invalid_argument(here + ".limits has " + std::to_string(route.limits.size()) +
                                " limits: 1 to 16 are allowed");
  }
  route.needsBody =
      std::ranges::any_of(route.limits, [](const RouteLimit& limit) { return limit.source.needsBody(); });
  return route;
}

RateLimitOptions RateLimitOptions::fromConfiguration(const Poco::Util::AbstractConfiguration& configuration) {
  return fromSettings(readSettings(configuration));
}

RateLimitOptions RateLimitOptions::fromSettings(const Settings& settings) {
  RateLimitOptions options = settings.http.limits;
  options.policies = settings.policies();
  options.clients = settings.http.clients;
  checkConfigured<LimitRules>(options);
  return options;
}

}  // namespace lockkeeper::poco
