#include "lockkeeper/redis/redlock_options.h"

#include <algorithm>
#include <stdexcept>

#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/check_range.h"
#include "uri_parameters.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t fewestNodes = 3;
constexpr std::size_t mostNodes = 31;  // more would only cost; a quorum of 16 is out of reach of any outage
constexpr milliseconds shortestGuard{std::chrono::seconds{1}};
constexpr milliseconds longestGuard{std::chrono::hours{24}};
constexpr milliseconds shortestNodeTimeout{1};
constexpr milliseconds longestNodeTimeout{std::chrono::hours{1}};
constexpr std::uint32_t mostDrift = 25;
constexpr std::uint32_t mostValidity = 90;

void readGuard(const StoreUri& uri, RedlockOptions& options) {
  if (uri.parameter("restartGuard") == "off") {
    options.restartGuard.reset();
  } else {
    options.restartGuard = uri.duration("restartGuard", *options.restartGuard, shortestGuard, longestGuard);
  }
  const auto declared = uri.parameter("appendfsync");
  if (declared && *declared != "always") {
    throw ConfigError("appendfsync is " + quoted(*declared) + ": only always can be declared");
  }
  options.appendFsyncAlways = declared.has_value();
}

// What stands between commas: one value that counts for all nodes, or one for each.
std::vector<std::string_view> perNode(const char* what, std::string_view text, std::size_t nodes) {
  std::vector<std::string_view> values;
  for (std::size_t begin = 0, end = 0; end != text.size(); begin = end + 1) {
    end = std::min(text.find(',', begin), text.size());
    values.push_back(text.substr(begin, end - begin));
  }
  if (values.size() == 1) return {nodes, values.front()};
  if (values.size() == nodes) return values;
  throw ConfigError(std::string(what) + " is " + quoted(text) +
                    ": one value for all nodes, or one for each of " + std::to_string(nodes) +
                    ", is allowed");
}

std::vector<RedisOptions> readNodes(const StoreUri& uri) {
  const std::size_t count = uri.endpoints().size();
  const std::string tlsText = uri.parameter("tls").value_or("off");
  const auto tls = perNode("tls", tlsText, count);
  const auto databases =
      perNode("the database", uri.path().size() > 1 ? std::string_view(uri.path()).substr(1) : "0", count);
  const auto isOn = [](std::string_view text) { return StoreUri::flagIn("tls", text); };
  RedisOptions common;
  common.fence = false;
  readCommon(uri, std::any_of(tls.begin(), tls.end(), isOn), common);
  std::vector<RedisOptions> nodes;
  for (std::size_t index = 0; index < count; ++index) {
    const Endpoint& endpoint = uri.endpoints()[index];
    RedisOptions& node = nodes.emplace_back(common);
    readHost(endpoint, node);
    readLogin(uri, &endpoint, node);
    readDatabase(databases[index], node.database);
    node.tls = isOn(tls[index]);
  }
  return nodes;
}

std::string addressOf(const RedisOptions& node) {
  const bool bracketed = node.host.find(':') != std::string::npos;
  return (bracketed ? "[" + node.host + "]" : node.host) + ":" + std::to_string(node.port);
}

}  // namespace

RedlockOptions RedlockOptions::fromUri(const StoreUri& uri) {
  allowOnly(uri, {"restartGuard", "appendfsync", "drift", "minValidity", "nodeTimeout", "fenceStore", "tls"},
            true);
  RedlockOptions options;
  options.nodes = readNodes(uri);
  readGuard(uri, options);
  options.drift = static_cast<std::uint32_t>(uri.number("drift", options.drift, 1, mostDrift));
  options.minValidity =
      static_cast<std::uint32_t>(uri.number("minValidity", options.minValidity, 1, mostValidity));
  if (uri.parameter("nodeTimeout")) {
    options.nodeTimeout = uri.duration("nodeTimeout", {}, shortestNodeTimeout, longestNodeTimeout);
  }
  return checked(std::move(options));
}

void RedlockOptions::check() const {
  if (nodes.size() < fewestNodes || nodes.size() > mostNodes) {
    throw std::invalid_argument("redlock has " + std::to_string(nodes.size()) +
                                (nodes.size() == 1 ? " node" : " nodes") + ": " +
                                std::to_string(fewestNodes) + " to " + std::to_string(mostNodes) +
                                " are allowed, best an odd number");
  }
  std::vector<std::string> addresses;
  for (const RedisOptions& node : nodes) {
    node.check();
    const std::string address = addressOf(node);
    if (std::find(addresses.begin(), addresses.end(), address) != addresses.end()) {
      throw std::invalid_argument("redlock has the node " + address +
                                  " twice: every vote needs a server of its own");
    }
    addresses.push_back(address);
  }
  if (restartGuard && (*restartGuard < shortestGuard || *restartGuard > longestGuard)) {
    throw std::invalid_argument("restartGuard is " + formatDuration(*restartGuard) + ": " +
                                formatDuration(shortestGuard) + " to " + formatDuration(longestGuard) +
                                " or off are allowed");
  }
  checkRange("drift", drift, 1, mostDrift);
  checkRange("minValidity", minValidity, 1, mostValidity);
  if (nodeTimeout) {
    checkDuration("nodeTimeout", *nodeTimeout, shortestNodeTimeout, longestNodeTimeout);
  }
}

std::string RedlockOptions::display() const {
  std::string text = "redlock://";
  for (const RedisOptions& node : nodes) {
    if (&node != &nodes.front()) text += ",";
    text += addressOf(node);
  }
  return text;
}

}  // namespace lockkeeper::redis
