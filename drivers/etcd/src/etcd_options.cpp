#include "lockkeeper/etcd/etcd_options.h"

#include <algorithm>
#include <stdexcept>

#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"

namespace lockkeeper::etcd {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t mostMembers = 31;
constexpr std::size_t longestPrefix = 200;
constexpr milliseconds shortestTimeout{1};
constexpr milliseconds longestTimeout{std::chrono::hours{1}};

void readMembers(const StoreUri& uri, EtcdOptions& options) {
  const std::vector<Endpoint>& endpoints = uri.endpoints();
  const auto named = [](const Endpoint& endpoint) { return !endpoint.host.empty(); };
  if (endpoints.empty() || !std::all_of(endpoints.begin(), endpoints.end(), named)) {
    throw ConfigError(uri.scheme() + " takes the hosts of the members, with commas between them");
  }
  for (const Endpoint& later : std::span(endpoints).subspan(1)) {
    if (later.user.empty() && later.password.empty()) continue;
    throw ConfigError("user and password stand before the first host only: they are the cluster's");
  }
  options.members.clear();
  for (const Endpoint& endpoint : endpoints) {
    options.members.push_back({.host = endpoint.host, .port = endpoint.port.value_or(2379)});
  }
  options.user = endpoints[0].user;
  options.password = uri.passwordOf(endpoints[0]);
  if (options.user.empty() != options.password.empty()) {
    throw ConfigError("user and password belong together: only one of them is given");
  }
}

void readFile(const StoreUri& uri, std::string_view name, std::string& out) {
  if (uri.parameter(name)) out = uri.file(name);
}

void readTimeout(const StoreUri& uri, std::string_view name, milliseconds& out) {
  if (const auto text = uri.parameter(name)) out = parseDuration(name, *text);
}

}  // namespace

EtcdOptions EtcdOptions::fromUri(const StoreUri& uri) {
  std::vector<std::string_view> known = {"connectTimeout", "ioTimeout", "passwordFile"};
  EtcdOptions options;
  options.tls = uri.scheme() == "etcds";
  if (options.tls) known.insert(known.end(), {"caFile", "certFile", "keyFile"});
  uri.allowOnly(known);
  readMembers(uri, options);
  if (!uri.path().empty() && uri.path() != "/") {
    options.prefix = uri.path();
    if (options.prefix.ends_with('/')) options.prefix.pop_back();
  }
  readFile(uri, "caFile", options.caFile);
  readFile(uri, "certFile", options.certFile);
  readFile(uri, "keyFile", options.keyFile);
  if (options.certFile.empty() != options.keyFile.empty()) {
    throw ConfigError("certFile and keyFile belong together: only one of them is given");
  }
  readTimeout(uri, "connectTimeout", options.connectTimeout);
  readTimeout(uri, "ioTimeout", options.ioTimeout);
  try {
    options.check();
  } catch (const std::invalid_argument& wrong) {
    throw ConfigError(wrong.what());
  }
  return options;
}

void EtcdOptions::check() const {
  if (members.empty() || members.size() > mostMembers) {
    throw std::invalid_argument(std::to_string(members.size()) + " members are named: 1 to " +
                                std::to_string(mostMembers) + " are allowed");
  }
  const bool printable =
      std::all_of(prefix.begin(), prefix.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (prefix.empty() || prefix.size() > longestPrefix || !printable || prefix.ends_with('/')) {
    throw std::invalid_argument("the prefix is " + quoted(prefix) + ": 1 to " +
                                std::to_string(longestPrefix) +
                                " printable characters without spaces are allowed, and no '/' at the end");
  }
  checkDuration("connectTimeout", connectTimeout, shortestTimeout, longestTimeout);
  checkDuration("ioTimeout", ioTimeout, shortestTimeout, longestTimeout);
}

std::string EtcdOptions::display() const {
  std::string text = tls ? "etcds://" : "etcd://";
  for (const Member& member : members) {
    if (&member != &members.front()) text += ",";
    const bool bracketed = member.host.find(':') != std::string::npos;
    text += (bracketed ? "[" + member.host + "]" : member.host) + ":" + std::to_string(member.port);
  }
  return text + (prefix.starts_with('/') ? "" : "/") + prefix;
}

}  // namespace lockkeeper::etcd
