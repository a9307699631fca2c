#include "limited_server.h"

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/StreamCopier.h>
#include <Poco/Util/PropertyFileConfiguration.h>

#include <sstream>

#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::test {
namespace {

using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

class EchoHandler final : public Poco::Net::HTTPRequestHandler {
 public:
  EchoHandler(std::atomic<int>& served, const std::function<void()>& serving)
      : served_(served), serving_(serving) {}

  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    ++served_;
    if (serving_) serving_();
    std::string body;
    if (request.hasContentLength() || request.getChunkedTransferEncoding()) {
      Poco::StreamCopier::copyToString(request.stream(), body);
    }
    response.set("X-Content-Type", request.getContentType());
    response.sendBuffer(body.data(), body.size());
  }

 private:
  std::atomic<int>& served_;
  const std::function<void()>& serving_;
};

class EchoFactory final : public Poco::Net::HTTPRequestHandlerFactory {
 public:
  EchoFactory(std::atomic<int>& served, const std::function<void()>& serving)
      : served_(served), serving_(serving) {}

  Poco::Net::HTTPRequestHandler* createRequestHandler(const HTTPServerRequest& request) override {
    return request.getURI() == "/nobody" ? nullptr : new EchoHandler(served_, serving_);
  }

 private:
  std::atomic<int>& served_;
  const std::function<void()>& serving_;
};

std::shared_ptr<RateLimiter> limiterOn(const std::string& uri, std::shared_ptr<Listener> listener) {
  StoreRegistry stores;
  redis::use(stores);
  Environment environment;
  environment.listener = std::move(listener);
  return std::make_shared<RateLimiter>(stores.openRates(uri, environment),
                                       RateLimiterOptions{.environment = environment});
}

}  // namespace

Poco::AutoPtr<Poco::Util::AbstractConfiguration> properties(const std::string& text) {
  std::istringstream stream(text);
  return Poco::AutoPtr<Poco::Util::AbstractConfiguration>(new Poco::Util::PropertyFileConfiguration(stream));
}

poco::RateLimitOptions limitOptions(const std::string& settings, const FilterHooks& hooks) {
  auto options = poco::RateLimitOptions::fromConfiguration(*properties(settings));
  options.clients.user = hooks.user;
  options.report = hooks.report;
  return options;
}

LimitedServer::LimitedServer(const std::string& limits, const std::string& settings, const FilterHooks& hooks,
                             std::function<void()> served)
    : serving_(std::move(served)), filter_(limiterOn(limits, hooks.listener), limitOptions(settings, hooks)) {
  server_ = std::make_unique<Poco::Net::HTTPServer>(
      filter_.wrap(std::make_unique<EchoFactory>(served_, serving_)).release(),
      Poco::Net::ServerSocket(Poco::Net::SocketAddress("0.0.0.0", 0)), new Poco::Net::HTTPServerParams);
  server_->start();
}

LimitedServer::~LimitedServer() { server_->stopAll(true); }

std::string LimitedServer::url(const std::string& target) const {
  return "http://127.0.0.1:" + std::to_string(server_->port()) + target;
}

CurlAnswer LimitedServer::get(const std::string& target, std::vector<std::string> arguments) const {
  arguments.insert(arguments.end(), {"--path-as-is", url(target)});
  return curl(arguments);
}

CurlAnswer LimitedServer::post(const std::string& target, const std::string& body,
                               std::vector<std::string> arguments) const {
  arguments.insert(arguments.end(), {"--data-binary", body});
  return get(target, std::move(arguments));
}

}  // namespace lockkeeper::test
