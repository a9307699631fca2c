#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "lockkeeper/driver/fork_guard.h"
#include "wire/dial/connector.h"
#include "wire/mux/channel.h"
#include "wire/protocol/resp.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

/// One server with the connection to it, and what the drivers on it share: how they read replies and go
/// through keys. Thread-safe.
class RedisStore {
 public:
  RedisStore(RedisOptions options, Environment environment);

  const RedisOptions& options() const { return connector.options(); }
  Clock& clock() { return *connector.environment().clock; }

  /// Of a reply that is 1 or 0.
  bool flagOf(const Reply& reply);
  /// What the error reply to a renewal means.
  RenewOutcome failedRenewal(const Reply& error) const;
  /// The same in words.
  std::string faultIn(const Reply& error) const;
  /// Throws what the error reply means. `needs` are the rights that the command takes.
  [[noreturn]] void refuse(const Reply& error, std::string_view needs = lockPermissions);
  /// Ends the connection and throws ProtocolError: the reply has a form that no server of ours would send.
  [[noreturn]] void unexpected();

  /// Calls `visit` with the keys that start with `prefix`, many at a time, none twice, without lockkeeper's
  /// companions; `type` is what TYPE says of them, or empty for all. `visit` returns false to end it.
  void scan(std::string_view prefix, std::string_view type, Instant deadline,
            const std::function<bool(std::span<const std::string_view> keys)>& visit);

  const ForkGuard forkGuard;
  Connector connector;
  Channel channel;
};

/// Writes the outcome of renewals that were not answered, by the error that `send` throws.
template <class Send>
void renewAll(std::span<Renewal> renewals, Send&& send) {
  try {
    send();
  } catch (const Error& error) {
    const bool untouched = error.code() == ErrorCode::storeUnavailable || error.code() == ErrorCode::config;
    for (Renewal& each : renewals) {
      each.outcome = untouched ? RenewOutcome::unavailable : RenewOutcome::unknown;
      each.cause = error.what();
    }
  }
}

}  // namespace lockkeeper::redis
