#include "shop/order_server.h"

#include <Poco/Exception.h>
#include <Poco/JSON/Object.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/URI.h>

#include <map>
#include <sstream>

#include "lockkeeper/error.h"
#include "shop/order_request.h"

namespace flash_sale {
namespace {

using lockkeeper::inventory::Deduction;
using lockkeeper::inventory::ReservationState;
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

Status statusOf(ReservationState state) {
  switch (state) {
    case ReservationState::held:
      return HTTPResponse::HTTP_CREATED;
    case ReservationState::confirmed:
    case ReservationState::cancelled:
      return HTTPResponse::HTTP_OK;
    case ReservationState::expired:
      return HTTPResponse::HTTP_GONE;
    case ReservationState::soldOut:
    case ReservationState::differs:
      return HTTPResponse::HTTP_CONFLICT;
    case ReservationState::unknownSku:
    case ReservationState::unknownId:
      break;
  }
  return HTTPResponse::HTTP_NOT_FOUND;
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
    const bool asks = path.starts_with(stockPath);
    const auto post = posts.find(path);
    if (!asks && (post == posts.end() || (post->first != "/orders" && shop_.reservations() == nullptr))) {
      return send(response, HTTPResponse::HTTP_NOT_FOUND,
                  errorText("there are /orders, /reservations, /payments and /stock/{sku}"));
    }
    const std::string allowed = asks ? "GET" : "POST";
    if (request.getMethod() != allowed) {
      response.set("Allow", allowed);
      return send(response, HTTPResponse::HTTP_METHOD_NOT_ALLOWED,
                  errorText("only " + allowed + " is allowed here"));
    }
    asks ? stock(path.substr(stockPath.size()), response) : (this->*post->second)(request, response);
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
    answerOrder(response, wanted.orderId, shop_.order(wanted.sku, wanted.quantity, wanted.orderId));
  }

  void reserve(HTTPServerRequest& request, HTTPServerResponse& response) {
    const OrderRequest wanted = OrderRequest::read(request.stream());
    const auto reservation =
        shop_.reservations()->reserve({{wanted.sku, wanted.quantity}}, heldFor, wanted.orderId);
    answerOrder(response, wanted.orderId, reservation.state);
  }

  void pay(HTTPServerRequest& request, HTTPServerResponse& response) {
    const PaymentRequest payment = PaymentRequest::read(request.stream());
    auto& stock = *shop_.reservations();
    answerOrder(response, payment.orderId,
                payment.accepted ? stock.confirm(payment.orderId) : stock.cancel(payment.orderId));
  }

  template <class Result>
  static void answerOrder(HTTPServerResponse& response, const std::string& orderId, Result result) {
    Object answer;
    answer.set("orderId", orderId);
    answer.set("result", std::string(toString(result)));
    send(response, statusOf(result), answer);
  }

  void stock(const std::string& sku, HTTPServerResponse& response) {
    const auto level = shop_.level(sku);
    if (!level) return send(response, HTTPResponse::HTTP_NOT_FOUND, errorText("unknown sku"));
    Object answer;
    answer.set("sku", sku);
    answer.set("level", *level);
    send(response, HTTPResponse::HTTP_OK, answer);
  }

  static const std::map<std::string, void (Handler::*)(HTTPServerRequest&, HTTPServerResponse&)> posts;

  Shop& shop_;
};

const std::map<std::string, void (Handler::*)(HTTPServerRequest&, HTTPServerResponse&)> Handler::posts{
    {"/orders", &Handler::order}, {"/reservations", &Handler::reserve}, {"/payments", &Handler::pay}};

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

// All customers may come at once.
Poco::Net::ServerSocket listen(std::uint16_t port, int customers) {
  return Poco::Net::ServerSocket(Poco::Net::SocketAddress("127.0.0.1", port), customers);
}

}  // namespace

OrderServer::OrderServer(Shop& shop, std::uint16_t port, int threads)
    : threads_(1, threads + 1), server_(new Factory(shop), threads_, listen(port, threads), params(threads)) {
  server_.start();
}

OrderServer::~OrderServer() {
  server_.stopAll(true);
  // A pool that ends before a thread it has started runs would leave what that thread was given, the server's
  // dispatcher, without an owner.
  threads_.joinAll();
}

}  // namespace flash_sale
