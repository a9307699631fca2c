#pragma once

#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServer.h>

#include <cstdint>
#include <memory>

#include "queue/job_queue.h"

namespace sms_gateway {

/// Makes handlers that take messages over HTTP:
///   POST /sms {"phone":"+4930123456","text":"hello"}
///     202 {"id":…} accepted, 400 with a JSON error, 503 the queue is full or cannot be reached
/// It knows nothing of limits: those are the filter's, around it. `queue` must outlive them.
std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> makeHandlers(JobQueue& queue);

/// Serves on 127.0.0.1 while it lives; port 0 takes a free one.
class GatewayServer {
 public:
  GatewayServer(std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> handlers, std::uint16_t port);
  ~GatewayServer();

  std::uint16_t port() const { return server_.port(); }

 private:
  Poco::Net::HTTPServer server_;
};

}  // namespace sms_gateway
