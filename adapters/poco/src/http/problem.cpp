#include "http/problem.h"

#include <Poco/JSON/Array.h>
#include <Poco/JSON/Object.h>

#include <sstream>

#include "http/request_body.h"

namespace lockkeeper::poco {

using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

void answer(HTTPServerRequest& request, HTTPServerResponse& response, const std::string& contentType,
            const std::string& body) {
  const bool read = skipBody(request);
  if (!read) response.setKeepAlive(false);
  response.setContentType(contentType);
  if (read) return response.sendBuffer(body.data(), body.size());
  response.setContentLength(static_cast<std::streamsize>(body.size()));
  (response.send() << body).flush();  // sendBuffer() keeps it until the request has ended
  closeUnread(request);
}

void answer(HTTPServerRequest& request, HTTPServerResponse& response, const Problem& problem) {
  Poco::JSON::Object object(Poco::JSON_PRESERVE_KEY_ORDER);
  object.set("type", problem.type);
  object.set("title", problem.title);
  object.set("status", static_cast<int>(problem.status));
  object.set("detail", problem.detail);
  if (!problem.violatedPolicies.empty()) {
    Poco::JSON::Array policies;
    for (const auto& policy : problem.violatedPolicies) policies.add(policy);
    object.set("violated-policies", policies);
  }
  std::ostringstream text;
  object.stringify(text);
  response.setStatusAndReason(problem.status);
  answer(request, response, "application/problem+json", text.str());
}

}  // namespace lockkeeper::poco
