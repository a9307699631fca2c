#include "lockkeeper/poco/rate_limit_filter.h"

#include <algorithm>
#include <optional>
#include <span>

#include "http/limit/limit_route.h"
#include "http/limit/rate_fields.h"
#include "http/problem.h"
#include "http/request_body.h"
#include "http/request_steps.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {
namespace {

using Poco::Net::HTTPResponse;
using Request = Poco::Net::HTTPServerRequest;
using Response = Poco::Net::HTTPServerResponse;

constexpr auto registry = "https://iana.org/assignments/http-problem-types#";

/// Refused because nobody could be asked, not because the client came too often.
bool closedByOutage(const RateTake& take) {
  return !take.decision.allowed && take.decision.outage && take.policy->options().outage == Outage::closed;
}

/// Of a refusal.
HTTPResponse::HTTPStatus statusOf(std::span<const RateTake> takes) {
  return std::ranges::any_of(takes, closedByOutage) ? HTTPResponse::HTTP_SERVICE_UNAVAILABLE
                                                    : HTTPResponse::HTTP_TOO_MANY_REQUESTS;
}

Problem quotaExceeded(const std::string& seconds) {
  return {.status = HTTPResponse::HTTP_TOO_MANY_REQUESTS,
          .type = registry + std::string("quota-exceeded"),
          .title = "Request cannot be satisfied as assigned quota has been exceeded",
          .detail = "Try again in " + seconds + " s."};
}

Problem outage(const std::string& seconds) {
  return {.status = HTTPResponse::HTTP_SERVICE_UNAVAILABLE,
          .type = registry + std::string("temporary-reduced-capacity"),
          .title = "Request cannot be satisfied due to temporary server capacity constraints",
          .detail = "The request's limits cannot be checked right now. Try again in " + seconds + " s."};
}

}  // namespace

class RateLimitFilter::State final : public FilterState<State, Handler, LimitRules> {
 public:
  State(std::shared_ptr<RateLimiter> limiter, RateLimitOptions options)
      : FilterState(std::move(options)), limiter_(needed(std::move(limiter), "RateLimiter")) {}

  RateLimiter& limiter() const { return *limiter_; }

 private:
  const std::shared_ptr<RateLimiter> limiter_;
};

/// Serves one request: asks the limits of its route, then refuses it or passes it to the application.
class RateLimitFilter::Handler final : public FilterHandler<State, LimitRules> {
 public:
  using FilterHandler::FilterHandler;

  void serve(const std::vector<std::string>& path, Request& request, Response& response) override {
    const LimitRoute* route = rules_->find(request.getMethod(), path);
    route != nullptr ? limit(*route, path, request, response) : passOn(*handlers_, request, response);
  }

  bool refusesAnything() const override {
    return std::ranges::any_of(rules_->routes(), [](const LimitRoute& route) { return !route.dryRun; });
  }

 private:
  void limit(const LimitRoute& route, const std::vector<std::string>& path, Request& request,
             Response& response) {
    RequestFacts facts = rules_->facts(request, path);
    if (!route.needsBody) {
      if (admit(route, facts, request, response)) passOn(*handlers_, request, response);
      return;
    }
    const std::size_t most = rules_->options().maxBody;
    Body body = readBody(request, most, rules_->options().bodyTimeout);
    if (body.end == BodyEnd::invalid || (body.end != BodyEnd::whole && !route.dryRun)) {
      return refuseBody(request, response, body.end, most);
    }
    facts.json = parseJson(body.bytes);
    const auto isClear = [&](const RouteLimit& limit) { return limit.source.isClear(facts); };
    if (!route.dryRun && !std::ranges::all_of(route.limits, isClear)) return refuseJson(request, response);
    if (!admit(route, facts, request, response)) return;
    ReplayedRequest replayed(request, std::move(body));
    passOn(*handlers_, replayed, response);
  }

  /// False when it has answered itself.
  bool admit(const LimitRoute& route, const RequestFacts& facts, Request& request, Response& response) {
    std::vector<std::string> keys;
    std::vector<RateTake> takes;
    keys.reserve(route.limits.size());  // so that the views of them stay good
    takes.reserve(route.limits.size());
    for (const RouteLimit& limit : route.limits) {
      keys.push_back(limit.source.keyFor(facts));
      takes.push_back({.key = keys.back(), .policy = limit.policy});
    }
    const Decision decision = state_->limiter().take(takes);
    if (!decision.allowed || decision.outage) report(route, takes, decision, traceOf(request));
    if (!decision.allowed) {
      tellRefused(state_->limiter().environment(), route.name, statusOf(takes), route.dryRun);
    }
    if (route.dryRun) return true;
    response.set("RateLimit-Policy", route.policyField);
    const std::string field = limitField(takes, decision.allowed);
    if (!field.empty()) response.set("RateLimit", field);
    if (!decision.allowed) refuse(takes, request, response);
    return decision.allowed;
  }

  void report(const LimitRoute& route, std::span<const RateTake> takes, const Decision& decision,
              std::string_view trace) const {
    const auto decided =
        std::ranges::find(takes, decision.policy, [](const RateTake& take) { return take.policy->name(); });
    const auto index = static_cast<std::size_t>(decided - takes.begin());
    const std::string key = printable(decided->key, decided->key.size());
    tell(rules_->options().report, {.route = route.name,
                                    .decision = decision,
                                    .dryRun = route.dryRun,
                                    .trace = trace,
                                    .source = route.limits[index].source.text(),
                                    .key = key});
  }

  static void refuse(std::span<const RateTake> takes, Request& request, Response& response) {
    const std::string seconds = std::to_string(retryAfter(takes));
    const bool down = statusOf(takes) == HTTPResponse::HTTP_SERVICE_UNAVAILABLE;
    Problem problem = down ? outage(seconds) : quotaExceeded(seconds);
    for (const RateTake& take : takes) {
      if (!take.decision.allowed) problem.violatedPolicies.push_back(take.policy->name());
    }
    response.set("Retry-After", seconds);
    answer(request, response, problem);
  }
};

RateLimitFilter::RateLimitFilter(std::shared_ptr<RateLimiter> limiter, RateLimitOptions options)
    : HttpFilter(std::make_shared<State>(std::move(limiter), std::move(options))) {}

}  // namespace lockkeeper::poco
