#include <algorithm>
#include <memory>
#include <utility>

#include "cluster/journey.h"
#include "cluster/node_parts.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/redis/cluster_driver.h"
#include "lockkeeper/redis/value_store.h"
#include "store/companion_key.h"

namespace lockkeeper::redis {

class ClusterValues::Impl {
 public:
  Impl(const ClusterOptions& options, const Environment& environment)
      : clock(environment.clock),
        ioTimeout(options.node.ioTimeout),
        topology((options.check(), options), environment),
        nodes(topology, options.node, [environment](RedisOptions node) {
          return std::make_shared<RedisValues>(std::move(node), environment);
        }) {}

  template <class Call>
  auto at(std::string_view key, Instant deadline, Call&& call) {
    forkGuard.check();
    return nodes.at(hashSlot(valueKey(key)), deadline, std::forward<Call>(call));
  }

  std::optional<std::string> await(std::string_view key, Instant until, const std::stop_token& stop,
                                   Instant lookBy);

  const ForkGuard forkGuard;
  const std::shared_ptr<Clock> clock;
  const std::chrono::milliseconds ioTimeout;
  Topology topology;
  NodeParts<RedisValues> nodes;
};

ClusterValues::ClusterValues(ClusterOptions options, Environment environment)
    : impl_(std::make_unique<Impl>(options, environment)) {}

ClusterValues::~ClusterValues() {
  // As RedisValues does.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

std::optional<std::string> ClusterValues::get(std::string_view key, Instant deadline) {
  checkKey(key);
  return impl_->at(key, deadline, [&](RedisValues& node) { return node.get(key, deadline); });
}

void ClusterValues::put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                        Instant deadline) {
  checkValue(key, value, ttl);
  impl_->at(key, deadline, [&](RedisValues& node) { node.put(key, value, ttl, deadline); });
}

bool ClusterValues::add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                        Instant deadline) {
  checkValue(key, value, ttl);
  return impl_->at(key, deadline, [&](RedisValues& node) { return node.add(key, value, ttl, deadline); });
}

bool ClusterValues::erase(std::string_view key, Instant deadline) {
  checkKey(key);
  return impl_->at(key, deadline, [&](RedisValues& node) { return node.erase(key, deadline); });
}

void ClusterValues::announce(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                             Instant deadline) {
  checkValue(key, value, ttl);
  impl_->at(key, deadline, [&](RedisValues& node) { node.announce(key, value, ttl, deadline); });
}

std::optional<std::string> ClusterValues::await(std::string_view key, Instant until,
                                                const std::stop_token& stop, Instant deadline) {
  checkKey(key);
  return impl_->await(key, until, stop, deadline);
}

// As those of ClusterDriver.
std::size_t ClusterValues::partOf(std::string_view key) const {
  return hashSlot(valueKey(key)) / (SlotMap::slots / mostParts);
}

// The value may move while it is waited for, long after the first look.
std::optional<std::string> ClusterValues::Impl::await(std::string_view key, Instant until,
                                                      const std::stop_token& stop, Instant lookBy) {
  forkGuard.check();
  Journey journey(topology, hashSlot(valueKey(key)), lookBy);
  while (true) {
    const std::shared_ptr<RedisValues> node = nodes.of(journey.node(), journey.importing());
    const Instant began = clock->now();
    const bool mayWait = began < until && !stop.stop_requested();
    try {
      return node->await(key, until, stop, lookBy);
    } catch (const Error& error) {
      const Instant now = clock->now();
      if (mayWait && now - began > longCall) {
        lookBy = std::max(lookBy, saturatingAdd(now, ioTimeout));
        journey.goOn(lookBy);
      }
      journey.follow(error);
    }
  }
}

}  // namespace lockkeeper::redis
