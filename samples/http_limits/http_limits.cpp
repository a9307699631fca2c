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

using namespace lockkeeper;
using namespace Poco::Net;

struct Hello : HTTPRequestHandler {
  void handleRequest(HTTPServerRequest&, HTTPServerResponse& answer) override { answer.send() << "hello\n"; }
};
struct Handlers : HTTPRequestHandlerFactory {
  HTTPRequestHandler* createRequestHandler(const HTTPServerRequest&) override { return new Hello; }
};

int main(int argc, char** argv) {
  StoreRegistry stores;
  redis::use(stores);
  const auto limits = std::make_shared<RateLimiter>(stores.openRates(argc > 1 ? argv[1] : "memory:"));
  poco::RateLimitFilter filter(
      limits, {.policies = {{"perAddress", RatePolicy::parse("perAddress", {{"rate", "2/s"}})}},
               .routes = {{.name = "hello", .match = "GET /hello", .limits = {{"perAddress", "address"}}}}});

  HTTPServer server(filter.wrap(std::make_unique<Handlers>()).release(),
                    ServerSocket(SocketAddress("127.0.0.1", 0)), new HTTPServerParams);
  server.start();
  std::cout << "http://" << server.socket().address().toString() << "/hello\nEnd with Enter." << std::endl;
  std::cin.get();
  server.stopAll(true);
}
