#include "http/limit/limited_handler.h"

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <algorithm>

#include "http/idempotency/request_body.h"
#include "http/limit/rate_fields.h"
#include "http/problem.h"
#include "http/request_steps.h"

namespace lockkeeper::poco::detail {
namespace {

using Poco::Net::HTTPResponse;

const std::string registry = "https://iana.org/assignments/http-problem-types#";
const std::string noType = "about:blank";

std::optional<std::vector<std::string>> pathOf(const Poco::Net::HTTPServerRequest& request) {
  try {
    return pathSegments(request.getURI());
  } catch (const Poco::SyntaxException&) {
    return std::nullopt;
  }
}

/// Refused because nobody could be asked, not because the client came too often.
bool closedByOutage(const RateTake& take) {
  return !take.decision.allowed && take.decision.outage && take.policy->options().outage == Outage::closed;
}

Problem quotaExceeded(const std::string& seconds) {
  return {.status = HTTPResponse::HTTP_TOO_MANY_REQUESTS,
          .type = registry + "quota-exceeded",
          .title = "Request cannot be satisfied as assigned quota has been exceeded",
          .detail = "Try again in " + seconds + " s."};
}

Problem outage(const std::string& seconds) {
  return {.status = HTTPResponse::HTTP_SERVICE_UNAVAILABLE,
          .type = registry + "temporary-reduced-capacity",
          .title = "Request cannot be satisfied due to temporary server capacity constraints",
          .detail = "The request's limits cannot be checked at present. Try again in " + seconds + " s."};
}

}  // namespace

void LimitedHandler::handleRequest(Request& request, Response& response) {
  const auto path = pathOf(request);
  if (!path && !table_->dryRun()) {
    return answer(
        request, response,
        {HTTPResponse::HTTP_BAD_REQUEST, noType, "Bad Request", "The request's target is not valid."});
  }
  const Route* route = path ? table_->find(request.getMethod(), *path) : nullptr;
  route != nullptr ? limit(*route, *path, request, response) : pass(request, response);
}

void LimitedHandler::limit(const Route& route, const std::vector<std::string>& path, Request& request,
                           Response& response) {
  RequestFacts facts{request, path, table_->clientAddress(), state_->hooks().user};
  if (!route.needsBody) {
    if (admit(route, facts, request, response)) pass(request, response);
    return;
  }
  Body body = readBody(request, table_->mostBodyBytes());
  if (!body.whole && !route.dryRun) {
    const std::string most = std::to_string(table_->mostBodyBytes());
    return answer(request, response,
                  {HTTPResponse::HTTP_REQUEST_ENTITY_TOO_LARGE, noType, "Content Too Large",
                   "The body is longer than " + most + " bytes."});
  }
  facts.json = parseJson(body.bytes);
  if (!admit(route, facts, request, response)) return;
  ReplayedRequest replayed(request, std::move(body.bytes));
  pass(replayed, response);
}

/// False when it has answered itself.
bool LimitedHandler::admit(const Route& route, const RequestFacts& facts, Request& request,
                           Response& response) {
  std::vector<std::string> keys;
  std::vector<RateTake> takes;
  keys.reserve(route.limits.size());  // so that the views of them stay good
  takes.reserve(route.limits.size());
  for (const RouteLimit& limit : route.limits) {
    keys.push_back(limit.source.keyFor(facts));
    takes.push_back({.key = keys.back(), .policy = limit.policy});
  }
  const Decision decision = state_->limiter().take(takes);
  if (!decision.allowed || decision.outage) report(route, decision);
  if (route.dryRun) return true;
  response.set("RateLimit-Policy", route.policyField);
  const std::string field = limitField(takes, decision.allowed);
  if (!field.empty()) response.set("RateLimit", field);
  if (!decision.allowed) refuse(takes, request, response);
  return decision.allowed;
}

void LimitedHandler::refuse(std::span<const RateTake> takes, Request& request, Response& response) const {
  const std::string seconds = std::to_string(retryAfter(takes));
  const bool down = std::ranges::any_of(takes, closedByOutage);
  Problem problem = down ? outage(seconds) : quotaExceeded(seconds);
  for (const RateTake& take : takes) {
    if (!take.decision.allowed) problem.violatedPolicies.push_back(take.policy->name());
  }
  response.set("Retry-After", seconds);
  answer(request, response, problem);
}

void LimitedHandler::report(const Route& route, const Decision& decision) const noexcept {
  tell(state_->hooks().report, {.route = route.name, .decision = decision, .dryRun = route.dryRun});
}

void LimitedHandler::pass(Request& request, Response& response) { passOn(*handlers_, request, response); }

}  // namespace lockkeeper::poco::detail
