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

/// Answers with `problem`. First reads what is left of the request's body, since a client that is still
/// sending might not see the answer; closes the connection when that is more than 1 MiB.
void answer(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response,
            const Problem& problem);

}  // namespace lockkeeper::poco
