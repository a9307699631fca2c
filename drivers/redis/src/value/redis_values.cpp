#include <memory>
#include <utility>

#include "cluster/topology.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/redis/value_store.h"
#include "store/companion_key.h"
#include "value/value_node.h"

namespace lockkeeper::redis {

using std::chrono::milliseconds;

class RedisValues::Impl {
 public:
  Impl(const RedisOptions& options, std::shared_ptr<ClusterMap> map, const Environment& environment)
      : clock(environment.clock),
        isCluster(map != nullptr),
        nodes(std::move(map), options, [environment](const RedisOptions& node) {
          return std::make_shared<ValueNode>(node, environment);
        }) {}

  template <class Call>
  auto at(std::string_view key, Instant deadline, Call&& call) {
    forkGuard.check();
    return nodes.at(valueKey(key), deadline, std::forward<Call>(call));
  }

  const ForkGuard forkGuard;
  const std::shared_ptr<Clock> clock;
  const bool isCluster;
  Topology<ValueNode> nodes;
};

RedisValues::RedisValues(RedisOptions options, Environment environment)
    : impl_(std::make_unique<Impl>(options, nullptr, environment)) {}

RedisValues::RedisValues(ClusterOptions options, Environment environment) {
  options.check();
  impl_ =
      std::make_unique<Impl>(options.node, std::make_shared<ClusterMap>(options, environment), environment);
}

RedisValues::~RedisValues() {
  // The socket is the parent's: closing it properly would end the parent's connection.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

std::optional<std::string> RedisValues::get(std::string_view key, Instant deadline) {
  checkKey(key);
  return impl_->at(key, deadline, [&](ValueNode& node) { return node.get(key, deadline); });
}

void RedisValues::put(std::string_view key, std::string_view value, milliseconds ttl, Instant deadline) {
  checkValue(key, value, ttl);
  impl_->at(key, deadline, [&](ValueNode& node) { node.put(key, value, ttl, deadline); });
}

bool RedisValues::add(std::string_view key, std::string_view value, milliseconds ttl, Instant deadline) {
  checkValue(key, value, ttl);
  return impl_->at(key, deadline, [&](ValueNode& node) { return node.add(key, value, ttl, deadline); });
}

bool RedisValues::erase(std::string_view key, Instant deadline) {
  checkKey(key);
  return impl_->at(key, deadline, [&](ValueNode& node) { return node.erase(key, deadline); });
}

void RedisValues::announce(std::string_view key, std::string_view value, milliseconds ttl, Instant deadline) {
  checkValue(key, value, ttl);
  impl_->at(key, deadline, [&](ValueNode& node) { node.announce(key, value, ttl, deadline); });
}

// The value may move while it is waited for, long after the first look.
std::optional<std::string> RedisValues::await(std::string_view key, Instant until,
                                              const std::stop_token& stop, Instant deadline) {
  checkKey(key);
  impl_->forkGuard.check();
  return impl_->nodes.wait(
      valueKey(key), deadline, until, stop, *impl_->clock,
      [&](ValueNode& node, Instant lookBy) { return node.await(key, until, stop, lookBy); });
}

// As that of RedisDriver.
std::size_t RedisValues::partOf(std::string_view key) const {
  return impl_->isCluster ? hashSlot(valueKey(key)) / (SlotMap::slots / mostParts) : 0;
}

}  // namespace lockkeeper::redis
