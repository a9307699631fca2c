// A payment that a client may send again, and that is charged once. See README.md beside it.

#include <Poco/Exception.h>
#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/NumberParser.h>
#include <Poco/StreamCopier.h>
#include <Poco/UUIDGenerator.h>
#include <lockkeeper/lock_manager.h>
#include <lockkeeper/poco/idempotency.h>
#include <lockkeeper/redis/use.h>
#include <lockkeeper/store_registry.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

using namespace Poco::Net;
using namespace std::chrono_literals;

/// Charges what it is asked to, and takes longer to say so than the client waits.
struct Charge : HTTPRequestHandler {
  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    std::string amount;
    Poco::StreamCopier::copyToString(request.stream(), amount);
    std::cout << "charged " << amount << std::endl;
    std::this_thread::sleep_for(2s);
    response.setStatusAndReason(HTTPResponse::HTTP_CREATED);
    response.send() << "charged " << amount << "\n";
  }
};
struct Handlers : HTTPRequestHandlerFactory {
  HTTPRequestHandler* createRequestHandler(const HTTPServerRequest&) override { return new Charge; }
};

int serve(const std::string& store) {
  lockkeeper::StoreRegistry stores;
  lockkeeper::redis::use(stores);
  const auto locks = std::make_shared<lockkeeper::LockManager>(stores.open(store));
  lockkeeper::poco::IdempotencyOptions options;
  options.routes.push_back({.name = "pay", .match = "POST /payments", .client = "address"});
  lockkeeper::poco::Idempotency once(locks, stores.openValues(store), options);

  HTTPServer server(once.wrap(std::make_unique<Handlers>()).release(),
                    ServerSocket(SocketAddress("127.0.0.1", 0)), new HTTPServerParams);
  server.start();
  std::cout << "serves on port " << server.port() << "; end with Enter" << std::endl;
  std::cin.get();
  server.stopAll(true);
  return 0;
}

/// Sends the payment with the same key until there is an answer to it.
int pay(std::uint16_t port, const std::string& amount) {
  const std::string key = Poco::UUIDGenerator::defaultGenerator().createRandom().toString();
  for (int tries = 1; tries <= 20; ++tries) {
    try {
      HTTPClientSession session("127.0.0.1", port);
      session.setTimeout(Poco::Timespan(0, 500'000));
      HTTPRequest request(HTTPRequest::HTTP_POST, "/payments", HTTPRequest::HTTP_1_1);
      request.set("Idempotency-Key", '"' + key + '"');
      request.setContentLength(static_cast<std::streamsize>(amount.size()));
      session.sendRequest(request) << amount;
      HTTPResponse response;
      std::string answer;
      Poco::StreamCopier::copyToString(session.receiveResponse(response), answer);
      if (response.getStatus() == HTTPResponse::HTTP_CREATED) {
        std::cout << answer << "after " << tries << " tries" << std::endl;
        return 0;
      }
      std::cout << response.getStatus() << ", trying again" << std::endl;  // 409: it is still at it
    } catch (const Poco::Exception& error) {
      std::cout << error.displayText() << ", trying again" << std::endl;
    }
    std::this_thread::sleep_for(500ms);
  }
  return 1;
}

int main(int argc, char** argv) {
  const std::string what = argc == 3 || argc == 4 ? argv[1] : "";
  if (what == "serve" && argc == 3) return serve(argv[2]);
  unsigned port = 0;
  if (what == "pay" && argc == 4 && Poco::NumberParser::tryParseUnsigned(argv[2], port) && port <= 65535) {
    return pay(static_cast<std::uint16_t>(port), argv[3]);
  }
  std::cerr << "usage: idempotent_payment serve STORE\n       idempotent_payment pay PORT AMOUNT\n";
  return 64;
}
