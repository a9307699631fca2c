#pragma once

#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Net/StreamSocket.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "curl.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/store/value_store.h"

namespace lockkeeper::test {

using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;
using Factory = std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory>;
using Serve = std::function<void(HTTPServerRequest& request, HTTPServerResponse& response)>;

/// An application's HTTP server on a free loopback port, with up to `threads` threads, which lets clients be
/// silent for `silence`. `wrap` puts something around the application's handlers, each of which calls
/// `serve`.
class AppServer {
 public:
  AppServer(const std::function<Factory(Factory)>& wrap, Serve serve, int threads = 32,
            std::chrono::seconds silence = std::chrono::seconds{60});
  ~AppServer();

  /// Runs curl with these arguments and the URL of `target`.
  CurlAnswer ask(const std::string& target, std::vector<std::string> arguments = {}) const;
  CurlAnswer put(const std::string& target) const { return ask(target, {"-X", "PUT", "--data", "x"}); }
  /// A POST with a JSON body and an Idempotency-Key.
  CurlAnswer post(const std::string& target, const std::string& key, const std::string& body,
                  std::vector<std::string> arguments = {}) const;

  /// A connection that has sent `bytes`.
  Poco::Net::StreamSocket send(const std::string& bytes) const;

  std::uint16_t port() const { return server_->port(); }
  int connections() const { return server_->currentConnections(); }

 private:
  const Serve serve_;
  std::unique_ptr<Poco::Net::HTTPServer> server_;
};

/// All that the peer sends until it closes the connection.
std::string readToEnd(Poco::Net::StreamSocket socket);

void reply(HTTPServerResponse& response, int status, const std::string& body);

std::shared_ptr<LockManager> managerOn(const std::string& uri);
std::shared_ptr<ValueStore> valuesOn(const std::string& uri);

}  // namespace lockkeeper::test
