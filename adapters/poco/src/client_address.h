#pragma once

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/IPAddress.h>

#include <string>
#include <vector>

namespace lockkeeper::poco {

/// Tells who sends a request. X-Forwarded-For counts only as far as listed proxies have written it: from the
/// right, up to the first address that is not one of theirs. What a client puts there itself is not looked
/// at. Thread-safe.
class ClientAddress {
 public:
  /// `proxies` is a list such as "10.0.0.0/8, ::1", or empty; `ipv6Prefix` is how many bits of an IPv6
  /// address tell a client from others, who usually has a whole network. Throws ConfigError that names the
  /// setting `what` for an entry that is not an address or a network.
  ClientAddress(const std::string& what, const std::string& proxies, unsigned ipv6Prefix);

  /// The address of the client, such as "192.0.2.7" or "2001:db8::/64".
  std::string of(const Poco::Net::HTTPServerRequest& request) const;

 private:
  struct Network {
    Poco::Net::IPAddress address;
    Poco::Net::IPAddress mask;
  };

  bool isProxy(const Poco::Net::IPAddress& address) const;
  std::string display(const Poco::Net::IPAddress& address) const;

  std::vector<Network> proxies_;
  unsigned ipv6Prefix_;
};

}  // namespace lockkeeper::poco
