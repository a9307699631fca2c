#include "wire/dial/server_checks.h"

#include <charconv>

#include "lockkeeper/error.h"
#include "lockkeeper/redis/redis_options.h"
#include "wire/protocol/redirect.h"

namespace lockkeeper::redis {

namespace {

constexpr int oldestVersion = 6;
constexpr int shardedChannels = 7;  // the version that has them

std::string field(std::string_view info, std::string_view name) {
  const std::string start = "\n" + std::string(name) + ":";
  const std::size_t at = info.find(start);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = info.substr(at + start.size());
  return std::string(rest.substr(0, rest.find_first_of("\r\n")));
}

int majorOf(std::string_view version) {
  int number = 0;
  std::from_chars(version.data(), version.data() + version.size(), number);
  return number;
}

// The server's own words go into messages: only short and harmless ones.
std::string shown(const std::string& word) {
  const bool harmless = word.size() <= 32 &&
                        word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-0123456789.") == std::string::npos;
  return harmless && !word.empty() ? word : "unknown";
}

std::string afterCrash(const ServerFacts& facts) {
  if (facts.aofEnabled != "1") {
    return "no append-only file: a restart of the server frees all locks taken since its last snapshot";
  }
  if (facts.appendFsync == "always") {
    return "append-only file, fsync always: locks survive a crash and a power loss of the server";
  }
  if (facts.appendFsync == "everysec") {
    return "append-only file, fsync everysec: locks survive a crash; a power loss frees those of the last "
           "second";
  }
  if (facts.appendFsync == "no") {
    return "append-only file, fsync no: locks survive a crash; a power loss frees those not yet written out";
  }
  return "append-only file, fsync unknown: locks survive a crash; a power loss may free the last ones";
}

// Each says which URI to write instead. A replica of a cluster is a part of it, too.
void checkClusterUse(const std::string& store, const ServerFacts& facts, const RedisOptions& options) {
  const bool isNode = facts.clusterEnabled == "1";
  const bool expected = options.cluster != ClusterUse::none;
  if (isNode == expected) return;
  const std::string address =
      options.unixPath.empty() ? NodeAddress{options.host, options.port}.text() : "its TCP address";
  if (isNode) {
    throw ConfigError(store + " is a node of a Redis Cluster (cluster_enabled:1): write redis+cluster://" +
                      address + ", best with more of its nodes");
  }
  throw ConfigError(store + " is no node of a Redis Cluster (cluster_enabled:0): write redis://" + address);
}

}  // namespace

ServerFacts parseInfo(std::string_view info) {
  const std::string mode = field(info, "redis_mode");
  return {.mode = mode.empty() ? field(info, "server_mode") : mode,  // as Valkey calls it
          .role = field(info, "role"),
          .loading = field(info, "loading"),
          .version = field(info, "redis_version"),
          .runId = field(info, "run_id"),
          .clusterEnabled = field(info, "cluster_enabled"),
          .evictionPolicy = field(info, "maxmemory_policy"),
          .maxMemory = field(info, "maxmemory"),
          .replicas = field(info, "connected_slaves"),
          .aofEnabled = field(info, "aof_enabled")};
}

void checkServer(const std::string& store, const ServerFacts& facts, const RedisOptions& options) {
  if (facts.mode == "sentinel") {
    throw ConfigError(store +
                      " is a sentinel, which keeps no locks: redis+sentinel:// asks it for the master");
  }
  if (majorOf(facts.version) < oldestVersion) {
    throw ConfigError(store + " has version " + shown(facts.version) + ": locks need Redis 6 or later");
  }
  checkClusterUse(store, facts, options);
  if (options.cluster == ClusterUse::informant) return;
  const std::string eviction = evictionFault(store, facts, options);
  if (!eviction.empty()) throw ConfigError(eviction);
  if (facts.role != "master") {
    throw StoreUnavailable(store + " is not a master (role: " + shown(facts.role) +
                           "): locks need the master");
  }
  if (facts.loading == "1") throw StoreUnavailable(store + " is still loading its data");
}

std::string evictionFault(const std::string& store, const ServerFacts& facts, const RedisOptions& options) {
  const bool evicts =
      !facts.evictionPolicy.empty() && facts.evictionPolicy != "noeviction" && facts.maxMemory != "0";
  if (!evicts || options.allowEviction) return {};
  return store + " may evict locks (maxmemory-policy " + shown(facts.evictionPolicy) +
         "): set noeviction, or allowEviction=true if locks may get lost";
}

void checkSentinel(const std::string& store, const ServerFacts& facts, const RedisOptions& /*options*/) {
  if (facts.mode != "sentinel") throw ConfigError(store + " is not a sentinel");
}

bool hasShardedChannels(const ServerFacts& facts) {
  return facts.clusterEnabled == "1" && majorOf(facts.version) >= shardedChannels;
}

std::string durabilityOf(const ServerFacts& facts) {
  const bool replicated = !facts.replicas.empty() && facts.replicas != "0";
  return afterCrash(facts) +
         (replicated ? "; a replica that takes over may lack the last locks and fences" : "");
}

}  // namespace lockkeeper::redis
