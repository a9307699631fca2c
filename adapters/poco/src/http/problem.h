#pragma once

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <string>
#include <vector>

namespace lockkeeper::poco {

/// A problem+json body (RFC 9457).
struct Problem {
  Poco::Net::HTTPResponse::HTTPStatus status;
  std::string type;  ///< A URI; "about:blank" when the status says it all.
  std::string title;
  std::string detail;
  std::vector<std::string> violatedPolicies{};
};

/// Sends `body` at once, with the status and the fields that are set. A body of the request that has not come
/// by then is not waited for: the connection is closed. Of a HEAD only the fields are sent.
void answer(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response,
            const std::string& contentType, const std::string& body);

/// The same with `problem`.
void answer(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response,
            const Problem& problem);

}  // namespace lockkeeper::poco
