#pragma once

#include <functional>
#include <string>

namespace Poco::Net {
class HTTPServerRequest;
}

namespace lockkeeper::poco {

/// Who sends a request: any bytes that tell users apart, or an empty text for nobody known. Called from the
/// threads that serve requests, several at a time. What it throws is answered by the server, as if the
/// handler had thrown it.
using UserOf = std::function<std::string(const Poco::Net::HTTPServerRequest& request)>;

/// How the clients of an HTTP server are told apart.
struct ClientOptions {
  std::string trustedProxies{};  ///< Whose X-Forwarded-For is believed, such as "10.0.0.0/8, ::1".
  unsigned ipv6Prefix = 64;      ///< How many bits of an IPv6 address are one client: 1 to 128.
  UserOf user{};                 ///< For keys by "user".
};

}  // namespace lockkeeper::poco
