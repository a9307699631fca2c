// An HTTP server whose clients may send two requests a second each. See README.md beside it.

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <lockkeeper/poco/rate_limit_filter.h>
#include <lockkeeper/rate_limiter.h>
#include <lockkeeper/redis/use.h>
#include <lockkeeper/store_registry.h>

#include <iostream>
#include <memory>

using namespace Poco::Net;

struct Hello : HTTPRequestHandler {
  void handleRequest(HTTPServerRequest&, HTTPServerResponse& response) override {
    response.send() << "hello\n";
  }
};
struct Handlers : HTTPRequestHandlerFactory {
  HTTPRequestHandler* createRequestHandler(const HTTPServerRequest&) override { return new Hello; }
};

int main(int argc, char** argv) {
  lockkeeper::StoreRegistry stores;
  lockkeeper::redis::use(stores);
  const auto limits =
      std::make_shared<lockkeeper::RateLimiter>(stores.openRates(argc > 1 ? argv[1] : "memory:"));
  lockkeeper::poco::RateLimitOptions options;
  options.policies.emplace("perAddress",
                           lockkeeper::RatePolicy::parse("perAddress", {{"rate", "2/s"}, {"burst", "2"}}));
  options.routes.push_back({.name = "hello", .match = "GET /hello", .limits = {{"perAddress", "address"}}});
  lockkeeper::poco::RateLimitFilter filter(limits, options);

  HTTPServer server(filter.wrap(std::make_unique<Handlers>()).release(),
                    ServerSocket(SocketAddress("127.0.0.1", 0)), new HTTPServerParams);
  server.start();
  std::cout << "http://" << server.socket().address().toString() << "/hello\nEnd with Enter." << std::endl;
  std::cin.get();
  server.stopAll(true);
}
