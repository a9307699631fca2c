#pragma once

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace lockkeeper::poco {

/// By path, without the query: what makes the handler of a request.
using PathHandlers = std::map<std::string, std::function<Poco::Net::HTTPRequestHandler*()>>;

/// A factory for these paths that leaves other requests to `others`; without them, they get 404.
std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> serveAt(
    PathHandlers handlers, std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> others);

/// True for GET and HEAD. Answers other methods with 405: `what` can only be read.
bool onlyReads(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response,
               const std::string& what);

}  // namespace lockkeeper::poco
