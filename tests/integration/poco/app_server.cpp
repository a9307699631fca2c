#include "app_server.h"

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPServerParams.h>

#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "wait_until.h"

namespace lockkeeper::test {

namespace {

constexpr int mostThreads = 32;

class AppHandler final : public Poco::Net::HTTPRequestHandler {
 public:
  explicit AppHandler(const Serve& serve) : serve_(serve) {}
  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    serve_(request, response);
  }

 private:
  const Serve& serve_;
};

class AppFactory final : public Poco::Net::HTTPRequestHandlerFactory {
 public:
  explicit AppFactory(const Serve& serve) : serve_(serve) {}
  Poco::Net::HTTPRequestHandler* createRequestHandler(const HTTPServerRequest&) override {
    return new AppHandler(serve_);
  }

 private:
  const Serve& serve_;
};

StoreRegistry stores() {
  StoreRegistry registry;
  redis::use(registry);
  return registry;
}

}  // namespace

AppServer::AppServer(const std::function<Factory(Factory)>& wrap, Serve serve, int threads,
                     std::chrono::seconds silence)
    : serve_(std::move(serve)) {
  static Poco::ThreadPool pool(mostThreads, 2 * mostThreads);
  auto* params = new Poco::Net::HTTPServerParams;
  params->setMaxThreads(threads);
  params->setTimeout(Poco::Timespan(silence.count(), 0));
  server_ = std::make_unique<Poco::Net::HTTPServer>(
      wrap(std::make_unique<AppFactory>(serve_)).release(), pool,
      Poco::Net::ServerSocket(Poco::Net::SocketAddress("127.0.0.1", 0)), params);
  server_->start();
}

// A server that is made while threads of the last one still leave the pool may find none in it, and Poco
// forgets to free the server then.
AppServer::~AppServer() {
  server_->stopAll(true);
  (void)waitUntil([&] { return server_->currentThreads() == 0; });
}

CurlAnswer AppServer::ask(const std::string& target, std::vector<std::string> arguments) const {
  arguments.push_back("http://127.0.0.1:" + std::to_string(port()) + target);
  return curl(arguments);
}

CurlAnswer AppServer::post(const std::string& target, const std::string& key, const std::string& body,
                           std::vector<std::string> arguments) const {
  arguments.insert(arguments.end(), {"-H", "Idempotency-Key: " + key, "-H", "Content-Type: application/json",
                                     "--data-binary", body});
  return ask(target, std::move(arguments));
}

Poco::Net::StreamSocket AppServer::send(const std::string& bytes) const {
  Poco::Net::StreamSocket socket(Poco::Net::SocketAddress("127.0.0.1", port()));
  socket.setReceiveTimeout(Poco::Timespan(20, 0));
  socket.sendBytes(bytes.data(), static_cast<int>(bytes.size()));
  return socket;
}

std::string readToEnd(Poco::Net::StreamSocket socket) {
  std::string all;
  char part[4096];
  for (int count = 0; (count = socket.receiveBytes(part, sizeof part)) > 0;) {
    all.append(part, static_cast<std::size_t>(count));
  }
  return all;
}

void reply(HTTPServerResponse& response, int status, const std::string& body) {
  response.setStatusAndReason(static_cast<Poco::Net::HTTPResponse::HTTPStatus>(status));
  response.sendBuffer(body.data(), body.size());
}

std::shared_ptr<LockManager> managerOn(const std::string& uri) {
  return std::make_shared<LockManager>(stores().open(uri));
}

std::shared_ptr<ValueStore> valuesOn(const std::string& uri) { return stores().openValues(uri); }

}  // namespace lockkeeper::test
