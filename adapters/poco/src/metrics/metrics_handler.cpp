#include "lockkeeper/poco/metrics_handler.h"

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <utility>

#include "http/path/path_factory.h"
#include "http/problem.h"
#include "http/request_steps.h"
#include "metrics/exposition.h"

namespace lockkeeper::poco {

using Poco::Net::HTTPRequestHandlerFactory;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

void MetricsHandler::handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) {
  boundSending(request);
  receive(request, response, [&](HTTPServerRequest& received) {
    if (onlyReads(received, response, "Metrics")) {
      answer(received, response, expositionType, metrics_->text());
    }
  });
}

std::unique_ptr<HTTPRequestHandlerFactory> serveMetrics(std::shared_ptr<const Metrics> metrics,
                                                        std::unique_ptr<HTTPRequestHandlerFactory> others,
                                                        std::string path) {
  const auto serve = [metrics = std::move(metrics)](HTTPServerRequest& request,
                                                    HTTPServerResponse& response) {
    MetricsHandler(metrics).handleRequest(request, response);
  };
  return serveAt({{std::move(path), serve}}, std::move(others));
}

}  // namespace lockkeeper::poco
