#include "simulation/redis/keyspace.h"

#include <Poco/String.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace lockkeeper::simulation {
namespace {

const RedisReply notAnInteger = RedisReply::error("ERR value is not an integer or out of range");
const RedisReply notAFloat = RedisReply::error("ERR value is not a valid float");
const RedisReply syntaxError = RedisReply::error("ERR syntax error");

std::optional<double> redisFloat(const std::string& text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) != 0) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || std::isnan(value)) return std::nullopt;
  return value;
}

// Of a range of indexes that may count from the end.
std::pair<std::int64_t, std::int64_t> clipped(std::int64_t first, std::int64_t last, std::int64_t size) {
  if (first < 0) first = std::max<std::int64_t>(0, first + size);
  if (last < 0) last += size;
  return {first, std::min(last, size - 1)};
}

// Globs of SCAN: '*', '?' and literal characters; nothing else is asked for.
bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*')
    return matches(pattern.substr(1), text) || (!text.empty() && matches(pattern, text.substr(1)));
  if (text.empty()) return false;
  if (pattern[0] == '\\' && pattern.size() > 1)
    pattern.remove_prefix(1);
  else if (pattern[0] == '?')
    return matches(pattern.substr(1), text.substr(1));
  return pattern[0] == text[0] && matches(pattern.substr(1), text.substr(1));
}

}  // namespace

std::optional<std::int64_t> redisInteger(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  // As Redis writes it: without zeros in front, and without "-0".
  const char* const digits = text.data() + (value < 0 ? 1 : 0);
  const bool plain = stop == end && (*digits != '0' || text == "0");
  return error == std::errc() && plain ? std::optional(value) : std::nullopt;
}

std::string redisDouble(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == std::floor(value) && std::abs(value) < 9.2e18)
    return std::to_string(static_cast<std::int64_t>(value));
  char text[64];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

void Keyspace::SortedSet::put(const std::string& member, double score) {
  remove(member);
  scores[member] = score;
  order.insert({score, member});
}

bool Keyspace::SortedSet::remove(const std::string& member) {
  const auto found = scores.find(member);
  if (found == scores.end()) return false;
  order.erase({found->second, member});
  scores.erase(found);
  return true;
}

struct Keyspace::Command {
  RedisReply (Keyspace::*call)(const Words&);
  std::size_t fewest;  // words, the name among them
  std::size_t most;
  bool writes;
};

const std::unordered_map<std::string, Keyspace::Command>& Keyspace::commands() {
  constexpr std::size_t any = std::numeric_limits<std::size_t>::max();
  static const std::unordered_map<std::string, Command> all{
      {"GET", {&Keyspace::get, 2, 2, false}},
      {"SET", {&Keyspace::set, 3, any, true}},
      {"DEL", {&Keyspace::del, 2, any, true}},
      {"EXISTS", {&Keyspace::exists, 2, any, false}},
      {"INCR", {&Keyspace::incr, 2, 2, true}},
      {"PEXPIRE", {&Keyspace::pexpire, 3, 3, true}},
      {"PEXPIREAT", {&Keyspace::pexpireat, 3, 3, true}},
      {"PTTL", {&Keyspace::pttl, 2, 2, false}},
      {"TYPE", {&Keyspace::type, 2, 2, false}},
      {"SCAN", {&Keyspace::scan, 2, any, false}},
      {"TIME", {&Keyspace::time, 1, 1, false}},
      {"HSET", {&Keyspace::hset, 4, any, true}},
      {"HGET", {&Keyspace::hget, 3, 3, false}},
      {"HDEL", {&Keyspace::hdel, 3, any, true}},
      {"HGETALL", {&Keyspace::hgetall, 2, 2, false}},
      {"LLEN", {&Keyspace::llen, 2, 2, false}},
      {"LINDEX", {&Keyspace::lindex, 3, 3, false}},
      {"LTRIM", {&Keyspace::ltrim, 4, 4, true}},
      {"RPUSH", {&Keyspace::rpush, 3, any, true}},
      {"ZADD", {&Keyspace::zadd, 4, any, true}},
      {"ZREM", {&Keyspace::zrem, 3, any, true}},
      {"ZSCORE", {&Keyspace::zscore, 3, 3, false}},
      {"ZRANGE", {&Keyspace::zrange, 4, 5, false}},
      {"ZREMRANGEBYSCORE", {&Keyspace::zremrangebyscore, 4, 4, true}},
  };
  return all;
}

bool Keyspace::knows(const std::string& name) { return commands().contains(name); }

bool Keyspace::writes(const std::string& name) {
  const auto found = commands().find(name);
  return found != commands().end() && found->second.writes;
}

std::optional<RedisReply> Keyspace::execute(const Words& words) {
  const auto found = commands().find(words.at(0));
  if (found == commands().end()) return std::nullopt;
  const Command& command = found->second;
  if (words.size() < command.fewest || words.size() > command.most) {
    return RedisReply::error("ERR wrong number of arguments for '" + Poco::toLower(words[0]) + "' command");
  }
  wrongType_ = false;
  wrote_ = wrote_ || command.writes;
  RedisReply reply = (this->*command.call)(words);
  if (!wrongType_) return reply;
  return RedisReply::error("WRONGTYPE Operation against a key holding the wrong kind of value");
}

class Keyspace::Copy {
 public:
  std::map<std::string, Entry> keys;
};

std::shared_ptr<const Keyspace::Copy> Keyspace::copy() const {
  return std::make_shared<const Copy>(Copy{keys_});
}

void Keyspace::replaceBy(const std::shared_ptr<const Copy>& copy) { keys_ = copy->keys; }

void Keyspace::move(const std::string& key, Keyspace& to) {
  if (find(key)) to.keys_.insert_or_assign(key, std::move(keys_.extract(key).mapped()));
}

std::vector<std::string> Keyspace::names() {
  std::vector<std::string> all;
  for (const auto& [key, entry] : keys_) {
    if (!entry.ends || now() <= *entry.ends) all.push_back(key);
  }
  return all;
}

Keyspace::Entry* Keyspace::find(const std::string& key) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return nullptr;
  if (found->second.ends && now() > *found->second.ends) {
    keys_.erase(found);
    return nullptr;
  }
  return &found->second;
}

template <class Type>
Type* Keyspace::get(const std::string& key) {
  Entry* const entry = find(key);
  if (!entry) return nullptr;
  Type* const value = std::get_if<Type>(&entry->value);
  wrongType_ = wrongType_ || !value;
  return value;
}

template <class Type>
Type& Keyspace::make(const std::string& key) {
  if (Type* const value = get<Type>(key)) return *value;
  if (!wrongType_) return keys_[key].value.emplace<Type>();
  static Type nobodys;
  return nobodys = {};
}

void Keyspace::dropIfEmpty(const std::string& key) {
  const Entry& entry = keys_.at(key);
  const auto* const hash = std::get_if<Hash>(&entry.value);
  const auto* const list = std::get_if<List>(&entry.value);
  const auto* const set = std::get_if<SortedSet>(&entry.value);
  if ((hash && hash->empty()) || (list && list->empty()) || (set && set->scores.empty())) keys_.erase(key);
}

RedisReply Keyspace::get(const Words& words) {
  const auto* const value = get<std::string>(words[1]);
  return value ? RedisReply::bulk(*value) : RedisReply();
}

RedisReply Keyspace::set(const Words& words) {
  bool absent = false;
  bool keepsTtl = false;
  std::optional<std::int64_t> length;
  for (std::size_t i = 3; i < words.size(); ++i) {
    if (Poco::icompare(words[i], "NX") == 0) {
      absent = true;
    } else if (Poco::icompare(words[i], "KEEPTTL") == 0) {
      keepsTtl = true;
    } else if (Poco::icompare(words[i], "PX") == 0 && i + 1 < words.size()) {
      length = redisInteger(words[++i]);
      if (!length) return notAnInteger;
      if (*length <= 0) return RedisReply::error("ERR invalid expire time in 'set' command");
    } else {
      return syntaxError;
    }
  }
  const Entry* const present = find(words[1]);
  if (absent && present) return {};
  Entry made{words[2], keepsTtl && present ? present->ends : std::nullopt};
  if (length) made.ends = now() + *length;
  keys_.insert_or_assign(words[1], std::move(made));
  return RedisReply::ok();
}

RedisReply Keyspace::del(const Words& words) {
  std::int64_t count = 0;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!find(words[i])) continue;
    keys_.erase(words[i]);
    ++count;
  }
  return RedisReply::of(count);
}

RedisReply Keyspace::exists(const Words& words) {
  return RedisReply::of(
      std::count_if(words.begin() + 1, words.end(), [&](const std::string& key) { return find(key); }));
}

RedisReply Keyspace::incr(const Words& words) {
  auto* const value = get<std::string>(words[1]);
  const auto former = value ? redisInteger(*value) : std::optional<std::int64_t>(0);
  if (!former) return notAnInteger;
  if (*former == std::numeric_limits<std::int64_t>::max()) {
    return RedisReply::error("ERR increment or decrement would overflow");
  }
  make<std::string>(words[1]) = std::to_string(*former + 1);
  return RedisReply::of(*former + 1);
}

RedisReply Keyspace::expireAt(const std::string& key, std::int64_t time) {
  Entry* const entry = find(key);
  if (!entry) return RedisReply::of(0);
  if (time <= now()) {
    keys_.erase(key);
  } else {
    entry->ends = time;
  }
  return RedisReply::of(1);
}

RedisReply Keyspace::pexpire(const Words& words) {
  const auto length = redisInteger(words[2]);
  if (!length) return notAnInteger;
  if (*length > std::numeric_limits<std::int64_t>::max() - now()) {
    return RedisReply::error("ERR invalid expire time in 'pexpire' command");
  }
  return expireAt(words[1], now() + *length);
}

RedisReply Keyspace::pexpireat(const Words& words) {
  const auto time = redisInteger(words[2]);
  return time ? expireAt(words[1], *time) : notAnInteger;
}

RedisReply Keyspace::pttl(const Words& words) {
  const Entry* const entry = find(words[1]);
  if (!entry) return RedisReply::of(-2);
  return RedisReply::of(entry->ends ? std::max<std::int64_t>(*entry->ends - now(), 0) : -1);
}

RedisReply Keyspace::type(const Words& words) {
  const Entry* const entry = find(words[1]);
  static const char* const names[] = {"string", "hash", "list", "zset"};
  return RedisReply::status(entry ? names[entry->value.index()] : "none");
}

// All at once: the scan of a small server.
RedisReply Keyspace::scan(const Words& words) {
  std::string pattern = "*";
  for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
    if (Poco::icompare(words[i], "MATCH") == 0) pattern = words[i + 1];
  }
  std::vector<RedisReply> found;
  for (const std::string& name : names()) {
    if (matches(pattern, name)) found.push_back(RedisReply::bulk(name));
  }
  return RedisReply::array({RedisReply::bulk("0"), RedisReply::array(std::move(found))});
}

RedisReply Keyspace::time(const Words& /*words*/) {
  const std::int64_t micros = clock_();
  return RedisReply::array({RedisReply::bulk(std::to_string(micros / 1000000)),
                            RedisReply::bulk(std::to_string(micros % 1000000))});
}

RedisReply Keyspace::hset(const Words& words) {
  if (words.size() % 2 != 0) return RedisReply::error("ERR wrong number of arguments for 'hset' command");
  Hash& hash = make<Hash>(words[1]);
  std::int64_t added = 0;
  for (std::size_t i = 2; i < words.size(); i += 2) {
    const auto found =
        std::find_if(hash.begin(), hash.end(), [&](const auto& each) { return each.first == words[i]; });
    if (found != hash.end()) {
      found->second = words[i + 1];
    } else {
      hash.emplace_back(words[i], words[i + 1]);
      ++added;
    }
  }
  return RedisReply::of(added);
}

RedisReply Keyspace::hget(const Words& words) {
  const Hash* const hash = get<Hash>(words[1]);
  if (!hash) return {};
  for (const auto& [field, value] : *hash) {
    if (field == words[2]) return RedisReply::bulk(value);
  }
  return {};
}

RedisReply Keyspace::hdel(const Words& words) {
  Hash* const hash = get<Hash>(words[1]);
  if (!hash) return RedisReply::of(0);
  std::int64_t removed = 0;
  for (std::size_t i = 2; i < words.size(); ++i) {
    removed += static_cast<std::int64_t>(
        std::erase_if(*hash, [&](const auto& each) { return each.first == words[i]; }));
  }
  dropIfEmpty(words[1]);
  return RedisReply::of(removed);
}

RedisReply Keyspace::hgetall(const Words& words) {
  RedisReply all = RedisReply::array();
  if (const Hash* const hash = get<Hash>(words[1])) {
    for (const auto& [field, value] : *hash) {
      all.items.push_back(RedisReply::bulk(field));
      all.items.push_back(RedisReply::bulk(value));
    }
  }
  return all;
}

RedisReply Keyspace::llen(const Words& words) {
  const List* const list = get<List>(words[1]);
  return RedisReply::of(list ? static_cast<std::int64_t>(list->size()) : 0);
}

RedisReply Keyspace::lindex(const Words& words) {
  const List* const list = get<List>(words[1]);
  const auto index = redisInteger(words[2]);
  if (!index) return list ? notAnInteger : RedisReply();
  if (!list) return {};
  const auto size = static_cast<std::int64_t>(list->size());
  const std::int64_t at = *index < 0 ? *index + size : *index;
  return at >= 0 && at < size ? RedisReply::bulk((*list)[static_cast<std::size_t>(at)]) : RedisReply();
}

RedisReply Keyspace::ltrim(const Words& words) {
  const auto first = redisInteger(words[2]);
  const auto last = redisInteger(words[3]);
  if (!first || !last) return notAnInteger;
  List* const list = get<List>(words[1]);
  if (!list) return RedisReply::ok();
  const auto [from, to] = clipped(*first, *last, static_cast<std::int64_t>(list->size()));
  List kept;
  for (std::int64_t i = from; i <= to; ++i) kept.push_back((*list)[static_cast<std::size_t>(i)]);
  *list = std::move(kept);
  dropIfEmpty(words[1]);
  return RedisReply::ok();
}

RedisReply Keyspace::rpush(const Words& words) {
  List& list = make<List>(words[1]);
  list.insert(list.end(), words.begin() + 2, words.end());
  return RedisReply::of(static_cast<std::int64_t>(list.size()));
}

RedisReply Keyspace::zadd(const Words& words) {
  if (words.size() % 2 != 0) return syntaxError;
  std::vector<double> scores;
  for (std::size_t i = 2; i < words.size(); i += 2) {
    const auto score = redisFloat(words[i]);
    if (!score) return notAFloat;
    scores.push_back(*score);
  }
  SortedSet& set = make<SortedSet>(words[1]);
  std::int64_t added = 0;
  for (std::size_t i = 2; i < words.size(); i += 2) {
    added += set.scores.count(words[i + 1]) == 0 ? 1 : 0;
    set.put(words[i + 1], scores[i / 2 - 1]);
  }
  return RedisReply::of(added);
}

RedisReply Keyspace::zrem(const Words& words) {
  SortedSet* const set = get<SortedSet>(words[1]);
  if (!set) return RedisReply::of(0);
  std::int64_t removed = 0;
  for (std::size_t i = 2; i < words.size(); ++i) removed += set->remove(words[i]) ? 1 : 0;
  dropIfEmpty(words[1]);
  return RedisReply::of(removed);
}

RedisReply Keyspace::zscore(const Words& words) {
  const SortedSet* const set = get<SortedSet>(words[1]);
  if (!set) return {};
  const auto found = set->scores.find(words[2]);
  return found == set->scores.end() ? RedisReply() : RedisReply::bulk(redisDouble(found->second));
}

RedisReply Keyspace::zrange(const Words& words) {
  const bool withScores = words.size() == 5;
  if (withScores && Poco::icompare(words[4], "WITHSCORES") != 0) return syntaxError;
  const auto first = redisInteger(words[2]);
  const auto last = redisInteger(words[3]);
  if (!first || !last) return notAnInteger;
  RedisReply all = RedisReply::array();
  const SortedSet* const set = get<SortedSet>(words[1]);
  if (!set) return all;
  const auto [from, to] = clipped(*first, *last, static_cast<std::int64_t>(set->order.size()));
  if (from > to) return all;
  auto each = std::next(set->order.begin(), static_cast<std::ptrdiff_t>(from));
  for (std::int64_t i = from; i <= to; ++i, ++each) {
    all.items.push_back(RedisReply::bulk(each->second));
    if (withScores) all.items.push_back(RedisReply::bulk(redisDouble(each->first)));
  }
  return all;
}

RedisReply Keyspace::zremrangebyscore(const Words& words) {
  const auto first = redisFloat(words[2]);
  const auto last = redisFloat(words[3]);
  if (!first || !last) return RedisReply::error("ERR min or max is not a float");
  SortedSet* const set = get<SortedSet>(words[1]);
  if (!set) return RedisReply::of(0);
  std::vector<std::string> gone;
  for (const auto& [score, member] : set->order) {
    if (score >= *first && score <= *last) gone.push_back(member);
  }
  for (const std::string& member : gone) set->remove(member);
  dropIfEmpty(words[1]);
  return RedisReply::of(static_cast<std::int64_t>(gone.size()));
}

}  // namespace lockkeeper::simulation
