#pragma once

#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "http/log.h"
#include "http/problem.h"
#include "http/request_body.h"
#include "lockkeeper/environment.h"

namespace lockkeeper::poco {

// Steps that all handlers between a server and an application take.

/// Answers a request without pathSegments() with 400.
void refuseTarget(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response);

/// Serves a request from which nobody can make two: one without hasClearFraming() is answered with 400, and
/// its connection is closed. So is the connection of one whose body was not read to its end; a body in chunks
/// is read by ChunkedBody.
void receive(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response,
             const std::function<void(Poco::Net::HTTPServerRequest& received)>& serve);

/// Answers a request whose body is longer than `most` bytes with 413, with 408 when it has not come in time,
/// and with 400 when it is invalid. Only closes the connection of a client that has gone.
void refuseBody(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response, BodyEnd end,
                std::size_t most);

/// Answers a request of whose JSON body no key may be made (KeySource::isClear()) with 400.
void refuseJson(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response);

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
