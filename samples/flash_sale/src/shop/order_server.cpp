#include "shop/order_server.h"

#include <Poco/Exception.h>
#include <Poco/JSON/Object.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/URI.h>

#include <sstream>

#include "lockkeeper/error.h"
#include "shop/order_request.h"

namespace flash_sale {
namespace {

using lockkeeper::inventory::Deduction;
using Poco::JSON::Object;
using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;
using Status = HTTPResponse::HTTPStatus;

constexpr const char* retryAfterSeconds = "1";
const std::string stockPath = "/stock/";

Object errorText(const std::string& message) {
  Object answer;
  answer.set("error", message);
  return answer;
}

void send(HTTPServerResponse& response, Status status, const Object& answer) {
  std::ostringstream text;
  answer.stringify(text);
  response.setStatusAndReason(status);
  response.setContentType("application/json");
  if (status == HTTPResponse::HTTP_BAD_REQUEST || status == HTTPResponse::HTTP_NOT_FOUND ||
      status == HTTPResponse::HTTP_METHOD_NOT_ALLOWED) {
    response.setKeepAlive(false);  // What may be left of the body would pass for the next request.
  }
  if (status == HTTPResponse::HTTP_LOCKED || status == HTTPResponse::HTTP_SERVICE_UNAVAILABLE) {
    response.set("Retry-After", retryAfterSeconds);
  }
  const std::string body = text.str();
  response.sendBuffer(body.data(), body.size());
}

Status statusOf(Deduction deduction) {
  switch (deduction) {
    case Deduction::deducted:
      return HTTPResponse::HTTP_CREATED;
    case Deduction::duplicate:
      return HTTPResponse::HTTP_OK;
    case Deduction::soldOut:
      return HTTPResponse::HTTP_CONFLICT;
    case Deduction::unknownSku:
      return HTTPResponse::HTTP_NOT_FOUND;
    case Deduction::busy:
    case Deduction::conflict:
      break;
  }
  return HTTPResponse::HTTP_LOCKED;
}

class Handler final : public Poco::Net::HTTPRequestHandler {
 public:
  explicit Handler(Shop& shop) : shop_(shop) {}

  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    try {
      route(request, response);
    } catch (const BadRequest& error) {
      Object answer = errorText(error.what());
      answer.set("field", error.field());
      send(response, HTTPResponse::HTTP_BAD_REQUEST, answer);
    } catch (const std::invalid_argument& error) {
      send(response, HTTPResponse::HTTP_BAD_REQUEST, errorText(error.what()));
    } catch (const lockkeeper::Error& error) {
      send(response, HTTPResponse::HTTP_SERVICE_UNAVAILABLE, errorText(error.what()));
    } catch (const Poco::Exception& error) {
      send(response, HTTPResponse::HTTP_INTERNAL_SERVER_ERROR, errorText(error.className()));
    }
  }

 private:
  void route(HTTPServerRequest& request, HTTPServerResponse& response) {
    const std::string path = pathOf(request);
    const bool orders = path == "/orders";
    if (!orders && !path.starts_with(stockPath)) {
      return send(response, HTTPResponse::HTTP_NOT_FOUND, errorText("there are /orders and /stock/{sku}"));
    }
    const std::string allowed = orders ? "POST" : "GET";
    if (request.getMethod() != allowed) {
      response.set("Allow", allowed);
      return send(response, HTTPResponse::HTTP_METHOD_NOT_ALLOWED,
                  errorText("only " + allowed + " is allowed here"));
    }
    orders ? order(request, response) : stock(path.substr(stockPath.size()), response);
  }

  static std::string pathOf(const HTTPServerRequest& request) {
    try {
      return Poco::URI(request.getURI()).getPath();
    } catch (const Poco::SyntaxException&) {
      throw BadRequest("path", "the path is not a valid one");
    }
  }

  void order(HTTPServerRequest& request, HTTPServerResponse& response) {
    const OrderRequest wanted = OrderRequest::read(request.stream());
    const Deduction deduction = shop_.order(wanted.sku, wanted.quantity, wanted.orderId);
    Object answer;
    answer.set("orderId", wanted.orderId);
    answer.set("result", std::string(toString(deduction)));
    send(response, statusOf(deduction), answer);
  }

  void stock(const std::string& sku, HTTPServerResponse& response) {
    const auto level = shop_.level(sku);
    if (!level) return send(response, HTTPResponse::HTTP_NOT_FOUND, errorText("unknown sku"));
    Object answer;
    answer.set("sku", sku);
    answer.set("level", *level);
    send(response, HTTPResponse::HTTP_OK, answer);
  }

  Shop& shop_;
};

class Factory final : public Poco::Net::HTTPRequestHandlerFactory {
 public:
  explicit Factory(Shop& shop) : shop_(shop) {}
  Poco::Net::HTTPRequestHandler* createRequestHandler(const HTTPServerRequest&) override {
    return new Handler(shop_);
  }

 private:
  Shop& shop_;
};

Poco::Net::HTTPServerParams* params(int threads) {
  auto* params = new Poco::Net::HTTPServerParams;
  params->setMaxThreads(threads);
  params->setMaxQueued(threads);
  params->setKeepAlive(true);
  params->setMaxKeepAliveRequests(0);  // no limit
  return params;
}

Poco::Net::ServerSocket listen(std::uint16_t port) {
  return Poco::Net::ServerSocket(Poco::Net::SocketAddress("127.0.0.1", port));
}

}  // namespace

OrderServer::OrderServer(Shop& shop, std::uint16_t port, int threads)
    : threads_(1, threads + 1), server_(new Factory(shop), threads_, listen(port), params(threads)) {
  server_.start();
}

OrderServer::~OrderServer() { server_.stopAll(true); }

}  // namespace flash_sale
