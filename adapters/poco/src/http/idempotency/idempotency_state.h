#pragma once

#include <Poco/Net/HTTPServerRequest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/idempotency/stored_answer.h"
#include "http/route/client_address.h"
#include "http/route/key_source.h"
#include "http/route/route_pattern.h"
#include "lockkeeper/poco/idempotency.h"

namespace lockkeeper::poco {

/// What the handlers of an Idempotency share: its options, checked, and its stores. Thread-safe.
class Idempotency::State {
 public:
  struct Route {
    std::string name;
    RoutePattern pattern;
    KeySource client;
    bool required;
    std::chrono::milliseconds keepFor;
    LockOptions lock;
  };

  /// Throws ConfigError.
  State(std::shared_ptr<LockManager> manager, std::shared_ptr<ValueStore> answers, IdempotencyOptions given);

  /// Null for requests that pass.
  const Route* find(const Poco::Net::HTTPServerRequest& request, const std::vector<std::string>& path) const;

  /// Throws Error.
  std::optional<StoredAnswer> kept(const std::string& key);

  /// Throws Error.
  std::optional<Lock> lock(const Route& route, const std::string& key) {
    return manager_->tryLock(key, route.lock);
  }

  /// Keeps the answer if it is final, and of one that is too long the fact. Reports what cannot be kept.
  void keep(const Route& route, const std::string& key, const StoredAnswer& answer) noexcept;

  void report(const Route& route, IdempotencyEvent event) const noexcept;

  const IdempotencyOptions& options() const { return options_; }
  const ClientAddress& address() const { return address_; }

 private:
  Route routeOf(const IdempotentRoute& given) const;
  Instant deadline() const { return saturatingAdd(options_.clock->now(), options_.operationTimeout); }
  std::string valueKey(const std::string& key) const;

  const std::shared_ptr<LockManager> manager_;
  const std::shared_ptr<ValueStore> answers_;
  const IdempotencyOptions options_;
  const ClientAddress address_;
  std::vector<Route> routes_;
};

}  // namespace lockkeeper::poco
