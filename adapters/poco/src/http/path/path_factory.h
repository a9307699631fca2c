#pragma once

#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace lockkeeper::poco {

/// Answers a request.
using Serve = std::function<void(Poco::Net::HTTPServerRequest&, Poco::Net::HTTPServerResponse&)>;

/// What serves the requests to a path, which comes without the query; empty for a path that is not ours.
using FindServe = std::function<Serve(const std::string& path)>;

/// A factory that serves what is found as receive() does, and leaves other requests to `others`; without
/// them, they get 404.
std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> serveFound(
    FindServe find, std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> others);

/// The same for a few paths.
std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> serveAt(
    std::map<std::string, Serve> paths, std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> others);

/// True for GET and HEAD. Answers other methods with 405: `what` can only be read.
bool onlyReads(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response,
               const std::string& what);

}  // namespace lockkeeper::poco
