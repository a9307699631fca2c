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

/// Answers with `problem`. First forgets what is left of the request's body, as far as skipBody() does;
/// closes the connection when there is more.
void answer(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response,
            const Problem& problem);

}  // namespace lockkeeper::poco
