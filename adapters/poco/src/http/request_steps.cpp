#include "http/request_steps.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Timestamp.h>

#include <memory>
#include <utility>

#include "http/route/route_pattern.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {

using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

std::optional<std::vector<std::string>> pathOf(const HTTPServerRequest& request) {
  try {
    return pathSegments(request.getURI());
  } catch (const Poco::SyntaxException&) {
    return std::nullopt;
  }
}

void refuseTarget(HTTPServerRequest& request, HTTPServerResponse& response) {
  answer(request, response,
         plainProblem(HTTPResponse::HTTP_BAD_REQUEST, "The request's target is not valid."));
}

void refuseLongBody(HTTPServerRequest& request, HTTPServerResponse& response, std::size_t most) {
  answer(request, response,
         plainProblem(HTTPResponse::HTTP_REQUEST_ENTITY_TOO_LARGE,
                      "The body is longer than " + std::to_string(most) + " bytes."));
}

void passOn(Poco::Net::HTTPRequestHandlerFactory& handlers, HTTPServerRequest& request,
            HTTPServerResponse& response) {
  const std::unique_ptr<Poco::Net::HTTPRequestHandler> handler(handlers.createRequestHandler(request));
  if (handler) return handler->handleRequest(request, response);
  response.setStatusAndReason(HTTPResponse::HTTP_NOT_IMPLEMENTED);
  response.setContentLength(0);
  response.send();
}

Problem plainProblem(HTTPResponse::HTTPStatus status, std::string detail) {
  return {.status = status,
          .type = "about:blank",
          .title = HTTPResponse::getReasonForStatus(status),
          .detail = std::move(detail)};
}

void refuseForNow(HTTPServerRequest& request, HTTPServerResponse& response, HTTPResponse::HTTPStatus status,
                  const std::string& why) {
  response.set("Retry-After", "1");
  answer(request, response, plainProblem(status, why + " Try again in 1 s."));
}

void tellRefused(const Environment& environment, std::string_view route, HTTPResponse::HTTPStatus status,
                 bool dryRun) noexcept {
  if (!environment.listener) return;
  const Instant now = environment.clock->now();
  environment.tell({.kind = EventKind::requestRefused,
                    .key = route,
                    .began = now,
                    .ended = now,
                    .status = static_cast<int>(status),
                    .dryRun = dryRun});
}

void answerForException(HTTPServerRequest& request, HTTPServerResponse& response) noexcept {
  try {
    if (response.sent()) return;
    response.clear();  // what the handler has set is not about this answer
    response.setDate(Poco::Timestamp());
    response.setKeepAlive(false);
    Problem problem;
    try {
      throw;
    } catch (const LockLost&) {
      response.set("Retry-After", "1");
      problem = plainProblem(HTTPResponse::HTTP_SERVICE_UNAVAILABLE,
                             "The lock was lost while the request was served. Try again in 1 s.");
    } catch (...) {
      problem = plainProblem(HTTPResponse::HTTP_INTERNAL_SERVER_ERROR, "The request could not be served.");
    }
    answer(request, response, problem);
  } catch (...) {
    // The client has gone.
  }
}

}  // namespace lockkeeper::poco
