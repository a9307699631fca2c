#pragma once

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/IPAddress.h>

#include <string>
#include <vector>

#include "lockkeeper/poco/client_options.h"

namespace lockkeeper::poco {

/// The address of whoever has made the request's connection; "unix" for a Unix socket, whose ends have none.
std::string peerOf(const Poco::Net::HTTPServerRequest& request);

/// What the request says in X-Forwarded-For, whoever has written it; empty if nothing.
std::string forwardedOf(const Poco::Net::HTTPServerRequest& request);

/// Tells who sends a request. X-Forwarded-For counts only as far as listed proxies have written it: from the
/// right, up to the first address that is not one of theirs. What a client puts there itself is not looked
/// at. Thread-safe.
class ClientAddress {
 public:
  /// Throws std::invalid_argument for a trusted proxy that is not an address or a network.
  explicit ClientAddress(const ClientOptions& options);

  /// The address of the client, such as "192.0.2.7" or "2001:db8::/64". All who come through Unix sockets are
  /// one client, as peerOf() says: nobody has said that X-Forwarded-For is to be believed there.
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
