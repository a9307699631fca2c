#include "lockkeeper/poco/health_handler.h"

#include <Poco/JSON/Object.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <sstream>
#include <stdexcept>
#include <utility>

#include "health/readiness.h"
#include "http/path/path_factory.h"
#include "http/problem.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {

using Poco::JSON::Object;
using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

namespace {

void send(HTTPServerRequest& request, HTTPServerResponse& response, bool isGood, const Object& body) {
  std::ostringstream text;
  body.stringify(text);
  response.setStatusAndReason(isGood ? HTTPResponse::HTTP_OK : HTTPResponse::HTTP_SERVICE_UNAVAILABLE);
  response.set("Cache-Control", "no-store");
  answer(request, response, "application/json", text.str());
}

void sendLive(HTTPServerRequest& request, HTTPServerResponse& response) {
  if (!onlyReads(request, response, "The health")) return;
  Object body;
  body.set("status", "live");
  send(request, response, true, body);
}

void sendReady(Readiness& readiness, HTTPServerRequest& request, HTTPServerResponse& response) {
  if (!onlyReads(request, response, "The health")) return;
  const Readiness::Result result = readiness.get();
  Object parts(Poco::JSON_PRESERVE_KEY_ORDER);
  for (const auto& [name, up] : result.parts) parts.set(name, up ? "up" : "down");
  Object body(Poco::JSON_PRESERVE_KEY_ORDER);
  body.set("status", result.ready ? "ready" : "not ready");
  body.set("parts", parts);
  body.set("suspectLocks", static_cast<Poco::UInt64>(result.suspectLocks));
  send(request, response, result.ready, body);
}

}  // namespace

std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> serveHealth(
    HealthParts parts, std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> others, HealthPaths paths) {
  if (paths.live == paths.ready) {
    throw std::invalid_argument("live and ready have the same path " + quoted(paths.live));
  }
  const auto readiness = std::make_shared<Readiness>(parts);
  const auto ready = [readiness](HTTPServerRequest& request, HTTPServerResponse& response) {
    sendReady(*readiness, request, response);
  };
  return serveAt({{std::move(paths.live), sendLive}, {std::move(paths.ready), ready}}, std::move(others));
}

}  // namespace lockkeeper::poco
