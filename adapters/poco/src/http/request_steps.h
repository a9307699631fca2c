#pragma once

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/problem.h"

namespace lockkeeper::poco {

// Steps that all handlers between a server and an application take.

/// A factory of such handlers, which are made of what they share and of the application's own factory.
template <class Handler, class State>
class HandlerFactory final : public Poco::Net::HTTPRequestHandlerFactory {
 public:
  HandlerFactory(std::shared_ptr<State> state, std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> handlers)
      : state_(std::move(state)), handlers_(std::move(handlers)) {}

  Poco::Net::HTTPRequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest&) override {
    return new Handler(state_, handlers_);
  }

 private:
  const std::shared_ptr<State> state_;
  const std::shared_ptr<Poco::Net::HTTPRequestHandlerFactory> handlers_;
};

/// The request's path; when its target is not valid, it is answered with 400 and the path is empty.
std::optional<std::vector<std::string>> pathOrRefuse(Poco::Net::HTTPServerRequest& request,
                                                     Poco::Net::HTTPServerResponse& response);

/// Lets the application serve the request; answers 501, as Poco's server does, when it has no handler.
void passOn(Poco::Net::HTTPRequestHandlerFactory& handlers, Poco::Net::HTTPServerRequest& request,
            Poco::Net::HTTPServerResponse& response);

/// `problem` without a type of its own.
Problem plainProblem(Poco::Net::HTTPResponse::HTTPStatus status, std::string detail);

/// Answers with a plain problem that may be gone after `wait`: Retry-After, in whole seconds and at least 1.
void refuseForNow(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response,
                  Poco::Net::HTTPResponse::HTTPStatus status, const std::string& why,
                  std::chrono::milliseconds wait = {});

/// For use in a catch block: answers in place of a handler that has thrown, with 503 for LockLost and 500 for
/// anything else. Does nothing when an answer was begun already. The connection ends with it, since Poco's
/// server closes it when the exception reaches it.
void answerForException(Poco::Net::HTTPServerRequest& request,
                        Poco::Net::HTTPServerResponse& response) noexcept;

/// Gives the report to the application's hook, if there is one, and drops what that throws.
template <class Report>
void tell(const std::function<void(const Report&)>& hook, const Report& report) noexcept {
  if (!hook) return;
  try {
    hook(report);
  } catch (...) {
    // The hook's own affair: a broken metric must not break a request.
  }
}

}  // namespace lockkeeper::poco
