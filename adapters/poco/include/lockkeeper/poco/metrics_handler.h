#pragma once

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>

#include <memory>
#include <string>

#include "lockkeeper/poco/export.h"
#include "lockkeeper/poco/metrics.h"

namespace lockkeeper::poco {

/// Answers GET and HEAD with the metrics in Prometheus's text format 0.0.4, other methods with 405. An
/// application's own factory makes one for each request to the path that it has chosen.
class LOCKKEEPER_POCO_EXPORT MetricsHandler final : public Poco::Net::HTTPRequestHandler {
 public:
  /// `metrics` may be shared with other handlers.
  explicit MetricsHandler(std::shared_ptr<const Metrics> metrics) : metrics_(std::move(metrics)) {}

  /// Called by Poco's server. Does no I/O but the answer.
  void handleRequest(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) override;

 private:
  const std::shared_ptr<const Metrics> metrics_;
};

/// A factory that serves the metrics at `path`. Other requests go to `others`, or get 404 if it is null.
/// Anybody may read them: do not open the port to the outside.
LOCKKEEPER_POCO_EXPORT std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> serveMetrics(
    std::shared_ptr<const Metrics> metrics,
    std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> others = nullptr, std::string path = "/metrics");

}  // namespace lockkeeper::poco
