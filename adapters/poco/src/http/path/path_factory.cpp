#include "http/path/path_factory.h"

#include <Poco/Net/HTTPRequestHandler.h>

#include <utility>

#include "http/problem.h"
#include "http/request_steps.h"

namespace lockkeeper::poco {

using Poco::Net::HTTPRequest;
using Poco::Net::HTTPRequestHandler;
using Poco::Net::HTTPRequestHandlerFactory;
using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

namespace {

void answerNotFound(HTTPServerRequest& request, HTTPServerResponse& response) {
  answer(request, response, plainProblem(HTTPResponse::HTTP_NOT_FOUND, "There is nothing at this path."));
}

class PathHandler final : public HTTPRequestHandler {
 public:
  explicit PathHandler(Serve serve) : serve_(std::move(serve)) {}

  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    boundSending(request);
    receive(request, response, [&](HTTPServerRequest& received) { serve_(received, response); });
  }

 private:
  const Serve serve_;
};

class PathFactory final : public HTTPRequestHandlerFactory {
 public:
  PathFactory(FindServe find, std::unique_ptr<HTTPRequestHandlerFactory> others)
      : find_(std::move(find)), others_(std::move(others)) {}

  HTTPRequestHandler* createRequestHandler(const HTTPServerRequest& request) override {
    const std::string& target = request.getURI();
    if (Serve found = find_(target.substr(0, target.find('?')))) return new PathHandler(std::move(found));
    return others_ ? others_->createRequestHandler(request) : new PathHandler(answerNotFound);
  }

 private:
  const FindServe find_;
  const std::unique_ptr<HTTPRequestHandlerFactory> others_;
};

}  // namespace

std::unique_ptr<HTTPRequestHandlerFactory> serveFound(FindServe find,
                                                      std::unique_ptr<HTTPRequestHandlerFactory> others) {
  return std::make_unique<PathFactory>(std::move(find), std::move(others));
}

std::unique_ptr<HTTPRequestHandlerFactory> serveAt(std::map<std::string, Serve> paths,
                                                   std::unique_ptr<HTTPRequestHandlerFactory> others) {
  const auto find = [paths = std::move(paths)](const std::string& path) {
    const auto found = paths.find(path);
    return found == paths.end() ? Serve() : found->second;
  };
  return serveFound(find, std::move(others));
}

bool onlyReads(HTTPServerRequest& request, HTTPServerResponse& response, const std::string& what) {
  const std::string& method = request.getMethod();
  if (method == HTTPRequest::HTTP_GET || method == HTTPRequest::HTTP_HEAD) return true;
  response.set("Allow", "GET, HEAD");
  answer(request, response,
         plainProblem(HTTPResponse::HTTP_METHOD_NOT_ALLOWED,
                      what + " can only be read: GET and HEAD are allowed."));
  return false;
}

}  // namespace lockkeeper::poco
