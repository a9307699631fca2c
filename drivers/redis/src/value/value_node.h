#pragma once

#include <chrono>
#include <initializer_list>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "queue/subscription.h"
#include "store/redis_store.h"

namespace lockkeeper::redis {

/// The values of one server. The operations are those of ValueStore, for keys that the server has; on a
/// cluster, they throw Redirected for others. Thread-safe.
class ValueNode : public RedisStore {
 public:
  ValueNode(const RedisOptions& options, const Environment& environment)
      : RedisStore(options, environment, [this] { subscription_.suspect(); }),
        subscription_(this->options(), this->environment(), dialRules()) {}

  std::optional<std::string> get(std::string_view key, Instant deadline);
  void put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl, Instant deadline);
  bool add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl, Instant deadline);
  bool erase(std::string_view key, Instant deadline);
  void announce(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                Instant deadline);
  std::optional<std::string> await(std::string_view key, Instant until, const std::stop_token& stop,
                                   Instant deadline);

 private:
  struct Keys;

  void ask(Request& request, std::initializer_list<std::string_view> words, Instant deadline);
  bool doneBy(const Request& request);
  std::optional<std::string> valueIn(Request& request);
  bool run(const Script& script, Request& request, const Keys& keys,
           std::span<const std::string_view> arguments, Instant deadline);

  Subscription subscription_;
};

}  // namespace lockkeeper::redis
