#pragma once

#include <Poco/Util/AbstractConfiguration.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "http/route/client_address.h"
#include "http/route/key_source.h"
#include "http/route/route_pattern.h"
#include "lockkeeper/poco/client_options.h"
#include "lockkeeper/rate_policy.h"

namespace lockkeeper::poco {

/// One limit that the requests of a route must keep.
struct RouteLimit {
  const RatePolicy* policy;  ///< In the table.
  KeySource source;
};

struct Route {
  std::string name;
  RoutePattern pattern;
  bool dryRun = false;
  std::vector<RouteLimit> limits;
  bool needsBody = false;
  std::string policyField{};  ///< RateLimit-Policy of its answers.
};

/// What the configuration says, checked, and never changed after that: a new configuration is a new table.
class RouteTable {
 public:
  /// Throws ConfigError that names the first setting that is unknown or not allowed.
  RouteTable(const Poco::Util::AbstractConfiguration& configuration, const UserOf& user);
  RouteTable(const RouteTable&) = delete;
  RouteTable& operator=(const RouteTable&) = delete;

  /// The most specific route that matches, or null.
  const Route* find(std::string_view method, const std::vector<std::string>& path) const;

  const ClientAddress& clientAddress() const { return address_; }
  std::size_t mostBodyBytes() const { return mostBodyBytes_; }
  bool dryRun() const { return dryRun_; }

 private:
  Route readRoute(const Poco::Util::AbstractConfiguration& configuration, const std::string& name,
                  const UserOf& user) const;

  const std::map<std::string, RatePolicy, std::less<>> policies_;
  std::vector<Route> routes_;
  ClientAddress address_;
  std::size_t mostBodyBytes_;
  bool dryRun_;
};

}  // namespace lockkeeper::poco
