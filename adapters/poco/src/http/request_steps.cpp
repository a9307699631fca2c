#include "http/request_steps.h"

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Timestamp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "http/framing.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {

using namespace std::string_view_literals;
using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

void refuseTarget(HTTPServerRequest& request, HTTPServerResponse& response) {
  answer(
      request, response,
      plainProblem(HTTPResponse::HTTP_BAD_REQUEST,
                   "The request's target must be a path of plain segments: without . and .., empty segments, "
                   "slashes or backslashes inside a segment, control characters and invalid escapes."));
}

void receive(HTTPServerRequest& request, HTTPServerResponse& response,
             const std::function<void(HTTPServerRequest&)>& serve) {
  if (!hasClearFraming(request)) {
    return answer(
        request, response,
        plainProblem(HTTPResponse::HTTP_BAD_REQUEST,
                     "It is unclear where the body ends: one Content-Length that is a number, or one "
                     "Transfer-Encoding that is \"chunked\", is allowed."));
  }
  auto* received = dynamic_cast<Poco::Net::HTTPServerRequestImpl*>(&request);
  if (received == nullptr) return serve(request);  // another filter has received it
  std::optional<ChunkedRequest> chunked;
  if (request.getChunkedTransferEncoding()) chunked.emplace(*received);
  HTTPServerRequest& served = chunked ? static_cast<HTTPServerRequest&>(*chunked) : request;
  serve(served);
  // Poco would go on with what the handler has left of the body.
  if (!skipBody(served)) response.setKeepAlive(false);
}

void refuseBody(HTTPServerRequest& request, HTTPServerResponse& response, BodyEnd end, std::size_t most) {
  if (end == BodyEnd::late) {
    return answer(request, response,
                  plainProblem(HTTPResponse::HTTP_REQUEST_TIMEOUT, "The body did not arrive in time."));
  }
  if (end == BodyEnd::invalid) {
    return answer(request, response,
                  plainProblem(HTTPResponse::HTTP_BAD_REQUEST, "The chunks of the body are not valid."));
  }
  if (end == BodyEnd::cut) return response.setKeepAlive(false);
  answer(request, response,
         plainProblem(HTTPResponse::HTTP_REQUEST_ENTITY_TOO_LARGE,
                      "The body is longer than " + std::to_string(most) + " bytes."));
}

void refuseJson(HTTPServerRequest& request, HTTPServerResponse& response) {
  answer(request, response,
         plainProblem(HTTPResponse::HTTP_BAD_REQUEST,
                      "The JSON object must not name a member twice, and a number in it that identifies "
                      "something must be an integer."));
}

void boundSending(HTTPServerRequest& request) {
  const auto* socket = socketOf(request);
  if (socket == nullptr) return;
  const auto longest = Poco::Timespan::TimeDiff{std::numeric_limits<int>::max()};
  const auto silence =
      static_cast<int>(std::min(request.serverParams().getTimeout().totalMilliseconds(), longest));
  // Not a time-out of each send(): streams hide that, and the connection would go on behind half an answer.
  // What is no TCP connection stays without.
  ::setsockopt(socket->impl()->sockfd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof silence);
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
                  const std::string& why, std::chrono::seconds retryAfter) {
  const std::string seconds = std::to_string(retryAfter.count());
  response.set("Retry-After", seconds);
  answer(request, response, plainProblem(status, why + " Try again in " + seconds + " s."));
}

std::string_view traceOf(const HTTPServerRequest& request) {
  if (!request.has("traceparent")) return {};
  // version-trace-parent-flags, such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01; later
  // versions may add more behind that.
  constexpr std::string_view shape = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
  const std::string_view given = request.get("traceparent");
  if (given.size() < shape.size()) return {};
  for (std::size_t index = 0; index < shape.size(); ++index) {
    const bool fits = shape[index] == '-' ? given[index] == '-'
                                          : "0123456789abcdef"sv.find(given[index]) != std::string_view::npos;
    if (!fits) return {};
  }
  const std::string_view version = given.substr(0, 2);
  const bool ends = given.size() == shape.size() || (version != "00" && given[shape.size()] == '-');
  const std::string_view trace = given.substr(3, 32);
  const bool none = trace.find_first_not_of('0') == std::string_view::npos;
  return version == "ff" || !ends || none ? std::string_view{} : trace;
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
