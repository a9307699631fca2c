#pragma once

#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/log.h"
#include "http/problem.h"
#include "http/request_body.h"
#include "lockkeeper/environment.h"

namespace lockkeeper::poco {

// Steps that all handlers between a server and an application take.

/// The segments of the request's path; empty when its target is not valid.
std::optional<std::vector<std::string>> pathOf(const Poco::Net::HTTPServerRequest& request);

/// Answers a request whose target is not valid with 400.
void refuseTarget(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response);

/// Answers a request whose body is longer than `most` bytes with 413, with 408 when it has not come in time,
/// and with 400 when it is invalid.
void refuseBody(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response, BodyEnd end,
                std::size_t most);

/// Breaks the connection of a client that takes nothing of its answer for as long as the server lets clients
/// be silent (HTTPServerParams::getTimeout()). Poco would wait for it without a bound, and what the handler
/// holds with it.
void boundSending(Poco::Net::HTTPServerRequest& request);

/// Lets the application serve the request; answers 501, as Poco's server does, when it has no handler.
void passOn(Poco::Net::HTTPRequestHandlerFactory& handlers, Poco::Net::HTTPServerRequest& request,
            Poco::Net::HTTPServerResponse& response);

/// `problem` without a type of its own.
Problem plainProblem(Poco::Net::HTTPResponse::HTTPStatus status, std::string detail);

/// Answers with a plain problem that may soon be gone: Retry-After says when.
void refuseForNow(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response,
                  Poco::Net::HTTPResponse::HTTPStatus status, const std::string& why,
                  std::chrono::seconds retryAfter = std::chrono::seconds{1});

/// For use in a catch block: answers in place of a handler that has thrown, with 503 for LockLost and 500 for
/// anything else. Does nothing when an answer was begun already. The connection ends with it, since Poco's
/// server closes it when the exception reaches it.
void answerForException(Poco::Net::HTTPServerRequest& request,
                        Poco::Net::HTTPServerResponse& response) noexcept;

/// The trace-id of the request's `traceparent` (W3C Trace Context), 32 hexadecimal digits that live as long
/// as the request; empty when it has none that is valid.
std::string_view traceOf(const Poco::Net::HTTPServerRequest& request);

/// Tells the listener that a request of the route is refused with `status`, or, in a dry run, would be.
void tellRefused(const Environment& environment, std::string_view route,
                 Poco::Net::HTTPResponse::HTTPStatus status, bool dryRun = false) noexcept;

/// Gives the report to the application's hook, or to the log when there is none. Drops what either throws.
template <class Report>
void tell(const std::function<void(const Report&)>& hook, const Report& report) noexcept {
  try {
    hook ? hook(report) : log(report);
  } catch (...) {
    // The hook's own affair: a broken metric must not break a request.
  }
}

}  // namespace lockkeeper::poco
