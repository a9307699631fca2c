#include "lockkeeper/redis/cluster_options.h"

#include <set>
#include <stdexcept>

#include "lockkeeper/error.h"
#include "uri_parameters.h"
#include "wire/protocol/redirect.h"

namespace lockkeeper::redis {

namespace {

constexpr std::size_t mostSeeds = 64;

void readSeeds(const StoreUri& uri, ClusterOptions& options) {
  for (const Endpoint& endpoint : uri.endpoints()) {
    RedisOptions address;
    readHost(endpoint, address);
    options.seeds.push_back({address.host, address.port});
    const bool login = !endpoint.user.empty() || !endpoint.password.empty();
    if (login && &endpoint != &uri.endpoints().front()) {
      throw ConfigError(
          "a login stands before another host than the first: one login, for all nodes, is allowed there");
    }
  }
}

}  // namespace

ClusterOptions ClusterOptions::fromUri(const StoreUri& uri) {
  allowOnly(uri, {"fence", "fenceKept", "minReplicas", "replicaTimeout", "tls"}, true);
  ClusterOptions options;
  readSeeds(uri, options);
  if (uri.path().size() > 1) readDatabase(std::string_view(uri.path()).substr(1), options.node.database);
  options.node.tls = uri.flag("tls", false);
  readLogin(uri, uri.endpoints().empty() ? nullptr : &uri.endpoints().front(), options.node);
  readCommon(uri, options.node.tls, options.node);
  readLockSettings(uri, options.node);
  return checked(std::move(options));
}

void ClusterOptions::check() const {
  node.check();
  if (node.database != 0) {
    throw std::invalid_argument("the database is " + std::to_string(node.database) +
                                ": a Redis Cluster has only database 0");
  }
  if (seeds.empty() || seeds.size() > mostSeeds) {
    throw std::invalid_argument(std::to_string(seeds.size()) + " nodes are named: 1 to " +
                                std::to_string(mostSeeds) + " are allowed");
  }
  std::set<NodeAddress> addresses;
  for (const Seed& seed : seeds) {
    const NodeAddress address{seed.host, seed.port};
    if (seed.host.empty() || seed.port == 0) {
      throw std::invalid_argument("the node " + quoted(address.text()) +
                                  " must have a host, and a port from 1 to 65535");
    }
    if (!addresses.insert(address).second) {
      throw std::invalid_argument("the node " + address.text() + " is named twice");
    }
  }
}

std::string ClusterOptions::display() const {
  std::string text = "redis+cluster://";
  for (const Seed& seed : seeds) {
    if (&seed != &seeds.front()) text += ",";
    text += NodeAddress{seed.host, seed.port}.text();
  }
  return text;
}

}  // namespace lockkeeper::redis
