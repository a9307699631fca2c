#pragma once

#include <functional>
#include <string>

namespace Poco::Net {
class HTTPServerRequest;
}

namespace lockkeeper::poco {

/// Returns who sends a request: any bytes that tell users apart, or an empty text for an unknown user. Called
/// on the threads that serve requests, several at a time. If it throws, the server answers as if the handler
/// had thrown.
using UserOf = std::function<std::string(const Poco::Net::HTTPServerRequest& request)>;

/// How the clients of an HTTP server are told apart.
struct ClientOptions {
  std::string trustedProxies{};  ///< Whose X-Forwarded-For is believed, such as "10.0.0.0/8, ::1".
  unsigned ipv6Prefix = 64;      ///< How many bits of an IPv6 address are one client: 1 to 128.
  UserOf user{};                 ///< For keys by "user".
};

}  // namespace lockkeeper::poco
