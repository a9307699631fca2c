#include <lockkeeper/poco/lock_services.h>  // these two first: they need no header of Poco
#include <lockkeeper/poco/rate_limit_filter.h>

#include <Poco/AutoPtr.h>
#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Util/MapConfiguration.h>
#include <lockkeeper/poco/lock_subsystem.h>

#include <iostream>

using namespace Poco::Net;

struct Handler : HTTPRequestHandler {
  void handleRequest(HTTPServerRequest&, HTTPServerResponse& response) override {
    response.sendBuffer("", 0);
  }
};

struct Handlers : HTTPRequestHandlerFactory {
  HTTPRequestHandler* createRequestHandler(const HTTPServerRequest&) override { return new Handler; }
};

int main() {
  Poco::AutoPtr<Poco::Util::MapConfiguration> configuration(new Poco::Util::MapConfiguration);
  configuration->setString("lockkeeper.store", "memory:");
  configuration->setString("lockkeeper.limits.orders.rate", "1/h");
  configuration->setString("lockkeeper.http.routes.orders.match", "GET /orders/{id}");
  configuration->setString("lockkeeper.http.routes.orders.limits.orders", "path id");

  const auto services = lockkeeper::poco::fromConfiguration(*configuration, lockkeeper::StoreRegistry());
  lockkeeper::poco::RateLimitFilter filter(
      services.sharedLimits(), lockkeeper::poco::RateLimitOptions::fromConfiguration(*configuration));
  HTTPServer server(filter.wrap(std::make_unique<Handlers>()).release(),
                    ServerSocket(SocketAddress("127.0.0.1", 0)), new HTTPServerParams);
  server.start();
  const auto ask = [&] {
    HTTPClientSession session("127.0.0.1", server.port());
    HTTPRequest request("GET", "/orders/42", "HTTP/1.1");
    session.sendRequest(request);
    HTTPResponse response;
    session.receiveResponse(response);
    return static_cast<int>(response.getStatus());
  };
  const bool limited = ask() == 200 && ask() == 429;
  server.stopAll(true);
  std::cout << (limited ? "order 42 is ours\n" : "order 42 is everybody's\n");
}
