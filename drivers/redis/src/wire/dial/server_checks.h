#pragma once

#include <string>
#include <string_view>

namespace lockkeeper::redis {

struct RedisOptions;

/// What INFO and CONFIG GET tell of a server; fields that it does not tell are empty.
struct ServerFacts {
  std::string mode{};  ///< "sentinel", or how the server keeps data.
  std::string role{};
  std::string loading{};  ///< "1" while its data is not there yet.
  std::string version{};
  std::string runId{};
  std::string clusterEnabled{};  ///< "1" for a node of a Redis Cluster.
  std::string evictionPolicy{};
  std::string maxMemory{};    ///< In bytes; "0" for no limit.
  std::string replicas{};     ///< How many are connected.
  std::string aofEnabled{};   ///< "0" or "1".
  std::string appendFsync{};  ///< "always", "everysec" or "no"; empty where CONFIG is not permitted.
};

/// Takes the facts from the text of INFO.
ServerFacts parseInfo(std::string_view info);

/// Throws unless locks can be kept on this server now: ConfigError when it is older than version 6, may evict
/// keys (without `options.allowEviction`), or is a node of a Redis Cluster unlike `options.cluster`;
/// StoreUnavailable when it is a replica or still loading its data, since that may change at any time. A mere
/// informant may be a replica, and evict what it likes.
void checkServer(const std::string& store, const ServerFacts& facts, const RedisOptions& options);

/// Why the server may remove keys with locks at any time, with what to do about it; empty when it does not,
/// or when that is allowed. Nothing is removed where memory has no limit.
std::string evictionFault(const std::string& store, const ServerFacts& facts, const RedisOptions& options);

/// Throws ConfigError unless this is a sentinel.
void checkSentinel(const std::string& store, const ServerFacts& facts, const RedisOptions& options);

/// Whether a wake-up can be published inside one part of a cluster, the slot of its channel.
bool hasShardedChannels(const ServerFacts& facts);

/// One line for people: what a crash of this server, or a failover, does to its locks.
std::string durabilityOf(const ServerFacts& facts);

}  // namespace lockkeeper::redis
