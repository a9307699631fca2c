#pragma once

#include <Poco/Net/HTTPServerRequest.h>

namespace lockkeeper::poco {

/// Whether the fields of a request say beyond doubt where it ends (RFC 9112, 6.3): it has one Content-Length,
/// or one Transfer-Encoding that is "chunked" and nothing else, or neither, and no field whose name is none.
/// Poco takes the body of others for empty, and what follows for the next request.
bool hasClearFraming(const Poco::Net::HTTPServerRequest& request);

}  // namespace lockkeeper::poco
