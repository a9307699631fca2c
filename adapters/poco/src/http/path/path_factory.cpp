#include "http/path/path_factory.h"

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <utility>

#include "http/problem.h"

namespace lockkeeper::poco {

using Poco::Net::HTTPRequest;
using Poco::Net::HTTPRequestHandler;
using Poco::Net::HTTPRequestHandlerFactory;
using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

namespace {

class NotFound final : public HTTPRequestHandler {
  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    answer(request, response,
           {HTTPResponse::HTTP_NOT_FOUND, "about:blank", "Not Found", "There is nothing at this path."});
  }
};

class PathFactory final : public HTTPRequestHandlerFactory {
 public:
  PathFactory(PathHandlers handlers, std::unique_ptr<HTTPRequestHandlerFactory> others)
      : handlers_(std::move(handlers)), others_(std::move(others)) {}

  HTTPRequestHandler* createRequestHandler(const HTTPServerRequest& request) override {
    const std::string& target = request.getURI();
    const auto found = handlers_.find(target.substr(0, target.find('?')));
    if (found != handlers_.end()) return found->second();
    return others_ ? others_->createRequestHandler(request) : new NotFound;
  }

 private:
  const PathHandlers handlers_;
  const std::unique_ptr<HTTPRequestHandlerFactory> others_;
};

}  // namespace

std::unique_ptr<HTTPRequestHandlerFactory> serveAt(PathHandlers handlers,
                                                   std::unique_ptr<HTTPRequestHandlerFactory> others) {
  return std::make_unique<PathFactory>(std::move(handlers), std::move(others));
}

bool onlyReads(HTTPServerRequest& request, HTTPServerResponse& response, const std::string& what) {
  const std::string& method = request.getMethod();
  if (method == HTTPRequest::HTTP_GET || method == HTTPRequest::HTTP_HEAD) return true;
  response.set("Allow", "GET, HEAD");
  answer(request, response,
         {HTTPResponse::HTTP_METHOD_NOT_ALLOWED, "about:blank", "Method Not Allowed",
          what + " can only be read: GET and HEAD are allowed."});
  return false;
}

}  // namespace lockkeeper::poco
