#include "lockkeeper/poco/health_handler.h"

#include <Poco/JSON/Object.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <sstream>
#include <stdexcept>
#include <utility>

#include "health/readiness.h"
#include "http/path/path_factory.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {

using Poco::JSON::Object;
using Poco::Net::HTTPRequestHandler;
using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

namespace {

void send(HTTPServerResponse& response, HTTPResponse::HTTPStatus status, const Object& body) {
  std::ostringstream text;
  body.stringify(text);
  response.setStatusAndReason(status);
  response.setContentType("application/json");
  response.set("Cache-Control", "no-store");
  response.sendBuffer(text.str().data(), text.str().size());  // to HEAD, without the body
}

class LiveHandler final : public HTTPRequestHandler {
  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    if (!onlyReads(request, response, "The health")) return;
    Object body;
    body.set("status", "live");
    send(response, HTTPResponse::HTTP_OK, body);
  }
};

class ReadyHandler final : public HTTPRequestHandler {
 public:
  explicit ReadyHandler(std::shared_ptr<Readiness> readiness) : readiness_(std::move(readiness)) {}

 private:
  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    if (!onlyReads(request, response, "The health")) return;
    const Readiness::Result result = readiness_->get();
    Object parts(Poco::JSON_PRESERVE_KEY_ORDER);
    for (const auto& [name, up] : result.parts) parts.set(name, up ? "up" : "down");
    Object body(Poco::JSON_PRESERVE_KEY_ORDER);
    body.set("status", result.ready ? "ready" : "not ready");
    body.set("parts", parts);
    body.set("suspectLocks", static_cast<Poco::UInt64>(result.suspectLocks));
    send(response, result.ready ? HTTPResponse::HTTP_OK : HTTPResponse::HTTP_SERVICE_UNAVAILABLE, body);
  }

  const std::shared_ptr<Readiness> readiness_;
};

}  // namespace

std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> serveHealth(
    HealthParts parts, std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> others, HealthPaths paths) {
  if (paths.live == paths.ready) {
    throw std::invalid_argument("live and ready have the same path " + quoted(paths.live));
  }
  const auto readiness = std::make_shared<Readiness>(parts);
  return serveAt({{std::move(paths.live), [] { return new LiveHandler; }},
                  {std::move(paths.ready), [readiness] { return new ReadyHandler(readiness); }}},
                 std::move(others));
}

}  // namespace lockkeeper::poco
