#include "gateway_server.h"

#include <Poco/JSON/Object.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <iostream>
#include <sstream>

namespace sms_gateway {
namespace {

using Poco::Net::HTTPRequest;
using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

constexpr const char* retryAfterSeconds = "1";

void send(HTTPServerResponse& response, HTTPResponse::HTTPStatus status, const std::string& name,
          const std::string& value) {
  Poco::JSON::Object answer;
  answer.set(name, value);
  std::ostringstream text;
  answer.stringify(text);
  response.setStatusAndReason(status);
  response.setContentType("application/json");
  if (status == HTTPResponse::HTTP_SERVICE_UNAVAILABLE) response.set("Retry-After", retryAfterSeconds);
  const std::string body = text.str();
  response.sendBuffer(body.data(), body.size());
}

class SmsHandler final : public Poco::Net::HTTPRequestHandler {
 public:
  explicit SmsHandler(JobQueue& queue) : queue_(queue) {}

  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    try {
      const Message message = Message::read(request.stream());
      if (queue_.put(message)) return send(response, HTTPResponse::HTTP_ACCEPTED, "id", message.id);
      send(response, HTTPResponse::HTTP_SERVICE_UNAVAILABLE, "error", "the queue is full");
    } catch (const BadRequest& error) {
      send(response, HTTPResponse::HTTP_BAD_REQUEST, "error", error.what());
    } catch (const QueueDown& error) {
      std::cerr << "sms_gateway: " + std::string(error.what()) + '\n';
      send(response, HTTPResponse::HTTP_SERVICE_UNAVAILABLE, "error",
           "the queue did not answer; the message may have been accepted");
    }
  }

 private:
  JobQueue& queue_;
};

class NotFoundHandler final : public Poco::Net::HTTPRequestHandler {
  void handleRequest(HTTPServerRequest&, HTTPServerResponse& response) override {
    response.setKeepAlive(false);  // What may be left of the body would pass for the next request.
    send(response, HTTPResponse::HTTP_NOT_FOUND, "error", "there is only POST /sms");
  }
};

class Handlers final : public Poco::Net::HTTPRequestHandlerFactory {
 public:
  explicit Handlers(JobQueue& queue) : queue_(queue) {}

  Poco::Net::HTTPRequestHandler* createRequestHandler(const HTTPServerRequest& request) override {
    if (request.getURI() == "/sms" && request.getMethod() == HTTPRequest::HTTP_POST) {
      return new SmsHandler(queue_);
    }
    return new NotFoundHandler;
  }

 private:
  JobQueue& queue_;
};

Poco::Net::ServerSocket listen(std::uint16_t port) {
  return Poco::Net::ServerSocket(Poco::Net::SocketAddress("127.0.0.1", port));
}

}  // namespace

std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> makeHandlers(JobQueue& queue) {
  return std::make_unique<Handlers>(queue);
}

GatewayServer::GatewayServer(std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> handlers,
                             std::uint16_t port)
    : server_(handlers.release(), listen(port), new Poco::Net::HTTPServerParams) {
  server_.start();
}

GatewayServer::~GatewayServer() { server_.stopAll(true); }

}  // namespace sms_gateway
