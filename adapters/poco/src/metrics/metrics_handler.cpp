#include "lockkeeper/poco/metrics_handler.h"

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <utility>

#include "http/path/path_factory.h"
#include "metrics/exposition.h"

namespace lockkeeper::poco {

using Poco::Net::HTTPRequestHandlerFactory;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

void MetricsHandler::handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) {
  if (!onlyReads(request, response, "Metrics")) return;
  const std::string text = metrics_->text();
  response.setContentType(expositionType);
  response.sendBuffer(text.data(), text.size());  // to HEAD, without the body
}

std::unique_ptr<HTTPRequestHandlerFactory> serveMetrics(std::shared_ptr<const Metrics> metrics,
                                                        std::unique_ptr<HTTPRequestHandlerFactory> others,
                                                        std::string path) {
  const auto handler = [metrics = std::move(metrics)] { return new MetricsHandler(metrics); };
  return serveAt({{std::move(path), handler}}, std::move(others));
}

}  // namespace lockkeeper::poco
