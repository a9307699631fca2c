#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "simulation/redis/reply.h"

namespace lockkeeper::simulation {

/// The keys of one Redis, and the commands that lockkeeper and its scripts use on them: as Redis 7.0 answers
/// them.
class Keyspace {
 public:
  /// `clock` tells microseconds since the epoch.
  explicit Keyspace(std::function<std::int64_t()> clock) : clock_(std::move(clock)) {}

  /// Nothing for a command that is none of keys.
  std::optional<RedisReply> execute(const Words& words);

  static bool knows(const std::string& name);
  /// Whether a command of that name changes keys.
  static bool writes(const std::string& name);

  /// Whether a command has changed keys, or may have, since the last call.
  bool wrote() noexcept { return std::exchange(wrote_, false); }

  void clear() { keys_.clear(); }
  /// What another server may have in the place of its keys. They end by the clock of that one.
  class Copy;
  std::shared_ptr<const Copy> copy() const;
  void replaceBy(const std::shared_ptr<const Copy>& copy);
  /// The key goes to another server, if it is there.
  void move(const std::string& key, Keyspace& to);
  /// The names of all keys that live.
  std::vector<std::string> names();

 private:
  using Hash = std::vector<std::pair<std::string, std::string>>;  // in the order of insertion
  using List = std::deque<std::string>;
  struct SortedSet {
    std::set<std::pair<double, std::string>> order;
    std::map<std::string, double> scores;
    void put(const std::string& member, double score);
    bool remove(const std::string& member);
  };
  struct Entry {
    std::variant<std::string, Hash, List, SortedSet> value;
    std::optional<std::int64_t> ends;  // in ms
  };
  struct Command;
  static const std::unordered_map<std::string, Command>& commands();

  std::int64_t now() const { return clock_() / 1000; }
  Entry* find(const std::string& key);
  /// @{ When the key has another type, they set wrongType_: get() is null then, make() a value of no key.
  template <class Type>
  Type* get(const std::string& key);
  template <class Type>
  Type& make(const std::string& key);
  /// @}
  void dropIfEmpty(const std::string& key);
  RedisReply expireAt(const std::string& key, std::int64_t time);

  RedisReply get(const Words& words);
  RedisReply set(const Words& words);
  RedisReply del(const Words& words);
  RedisReply exists(const Words& words);
  RedisReply incr(const Words& words);
  RedisReply pexpire(const Words& words);
  RedisReply pexpireat(const Words& words);
  RedisReply pttl(const Words& words);
  RedisReply type(const Words& words);
  RedisReply scan(const Words& words);
  RedisReply time(const Words& words);
  RedisReply hset(const Words& words);
  RedisReply hget(const Words& words);
  RedisReply hdel(const Words& words);
  RedisReply hgetall(const Words& words);
  RedisReply llen(const Words& words);
  RedisReply lindex(const Words& words);
  RedisReply ltrim(const Words& words);
  RedisReply rpush(const Words& words);
  RedisReply zadd(const Words& words);
  RedisReply zrem(const Words& words);
  RedisReply zscore(const Words& words);
  RedisReply zrange(const Words& words);
  RedisReply zremrangebyscore(const Words& words);

  std::function<std::int64_t()> clock_;
  std::map<std::string, Entry> keys_;
  bool wrongType_ = false;
  bool wrote_ = false;
};

/// The number that `text` is as a whole, as Redis reads arguments.
std::optional<std::int64_t> redisInteger(const std::string& text);
/// A double as Redis writes it.
std::string redisDouble(double value);

}  // namespace lockkeeper::simulation
