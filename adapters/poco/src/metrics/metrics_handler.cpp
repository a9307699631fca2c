#include "lockkeeper/poco/metrics_handler.h"

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <utility>

#include "http/problem.h"
#include "metrics/exposition.h"

namespace lockkeeper::poco {

using Poco::Net::HTTPRequest;
using Poco::Net::HTTPRequestHandler;
using Poco::Net::HTTPRequestHandlerFactory;
using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

namespace {

class NotFound final : public HTTPRequestHandler {
  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    answer(request, response,
           {HTTPResponse::HTTP_NOT_FOUND, "about:blank", "Not Found", "There is nothing at this path."});
  }
};

class MetricsFactory final : public HTTPRequestHandlerFactory {
 public:
  MetricsFactory(std::shared_ptr<const Metrics> metrics, std::unique_ptr<HTTPRequestHandlerFactory> others,
                 std::string path)
      : metrics_(std::move(metrics)), others_(std::move(others)), path_(std::move(path)) {}

  HTTPRequestHandler* createRequestHandler(const HTTPServerRequest& request) override {
    const std::string& target = request.getURI();
    if (target.substr(0, target.find('?')) == path_) return new MetricsHandler(metrics_);
    return others_ ? others_->createRequestHandler(request) : new NotFound;
  }

 private:
  const std::shared_ptr<const Metrics> metrics_;
  const std::unique_ptr<HTTPRequestHandlerFactory> others_;
  const std::string path_;
};

}  // namespace

void MetricsHandler::handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) {
  const std::string& method = request.getMethod();
  if (method != HTTPRequest::HTTP_GET && method != HTTPRequest::HTTP_HEAD) {
    response.set("Allow", "GET, HEAD");
    return answer(request, response,
                  {HTTPResponse::HTTP_METHOD_NOT_ALLOWED, "about:blank", "Method Not Allowed",
                   "Metrics can only be read: GET and HEAD are allowed."});
  }
  const std::string text = metrics_->text();
  response.setContentType(expositionType);
  response.sendBuffer(text.data(), text.size());  // to HEAD, without the body
}

std::unique_ptr<HTTPRequestHandlerFactory> serveMetrics(std::shared_ptr<const Metrics> metrics,
                                                        std::unique_ptr<HTTPRequestHandlerFactory> others,
                                                        std::string path) {
  return std::make_unique<MetricsFactory>(std::move(metrics), std::move(others), std::move(path));
}

}  // namespace lockkeeper::poco
