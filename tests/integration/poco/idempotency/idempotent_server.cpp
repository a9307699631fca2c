// An HTTP server that carries out POST /orders once for each Idempotency-Key. Arguments: the port of
// redis-server, and a file to which each run of the handler adds a line. Writes its own port. A request with
// the field X-Hang is never answered.

#include <unistd.h>

#include <fstream>
#include <iostream>

#include "app_server.h"
#include "lockkeeper/poco/idempotency.h"

namespace lockkeeper::test {
namespace {

int serve(const std::string& redisPort, const std::string& journal) {
  const std::string uri = "redis://127.0.0.1:" + redisPort;
  const auto wrap = [&](Factory handlers) {
    poco::IdempotencyOptions options;
    options.routes = {
        {.name = "order", .match = "POST /orders", .client = "all", .ttl = std::chrono::milliseconds{1500}}};
    return poco::Idempotency(managerOn(uri), valuesOn(uri), std::move(options)).wrap(std::move(handlers));
  };
  const AppServer server(wrap, [&](HTTPServerRequest& request, HTTPServerResponse& response) {
    std::ofstream(journal, std::ios::app) << "run\n" << std::flush;
    while (request.has("X-Hang")) pause();
    reply(response, 201, "made by " + std::to_string(getpid()));
  });
  std::cout << server.port() << std::endl;
  for (;;) pause();
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  return count == 3 ? lockkeeper::test::serve(arguments[1], arguments[2]) : 64;
}
