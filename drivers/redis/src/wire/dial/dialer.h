#pragma once

#include <Poco/Net/Context.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "lockkeeper/environment.h"
#include "lockkeeper/internal/backoff.h"
#include "lockkeeper/redis/redis_options.h"
#include "lockkeeper/stream/host_lookup.h"
#include "lockkeeper/stream/stream.h"
#include "wire/dial/log_in.h"
#include "wire/dial/server_checks.h"

namespace lockkeeper::redis {

/// The pauses between attempts to connect to a server that cannot be reached.
inline constexpr Backoff redialBackoff{std::chrono::milliseconds{20}, std::chrono::milliseconds{500}};

/// How a server is found, and what it must be.
struct DialRules {
  Resolver resolve = resolveBySystem;  ///< Finds the addresses of the host.
  Needs needs{};
};

/// One server, and how to connect to it: each connection is made by a Dial. Thread-safe.
class Dialer {
 public:
  /// Throws ConfigError for certificate or key files that cannot be used.
  Dialer(RedisOptions options, Environment environment, DialRules rules = {});

  const RedisOptions& options() const { return options_; }
  const Environment& environment() const { return environment_; }
  const std::string& store() const { return store_; }

  /// What the last connected server keeps after a crash; one line for people.
  std::string durability() const;

 private:
  friend class Dial;

  void note(const ServerFacts& facts);

  const RedisOptions options_;
  const Environment environment_;
  const DialRules rules_;
  const std::string store_;
  const Poco::Net::Context::Ptr tls_;
  mutable std::mutex mutex_;
  std::string durability_ = "not connected yet";
  std::string notedRunId_;
};

/// For further connections to a server: the first one tells the listener about it.
Environment silent(Environment environment);

/// A connection in the making: the host's addresses, then for one address after the other TCP, TLS and
/// log-in, until one leads to a server that is right. Never blocks, so that one thread may make several at
/// once. Takes connectTimeout at most, shared evenly among the addresses. One thread at a time.
class Dial {
 public:
  /// `dialer` must outlive it.
  Dial(Dialer& dialer, Instant now);

  /// Goes on as far as it can. False: once more when awaited() is there, or at actBy(). Throws
  /// StoreUnavailable, ConfigError or ProtocolError, naming the store; nothing but the log-in has been sent
  /// then.
  bool advance(Instant now);
  /// Its descriptor is negative when there is nothing to wait for.
  pollfd awaited() const;
  Instant actBy() const { return addressUntil_; }

  /// Nobody has attended to it for so long: that does not count as its time.
  void paused(std::chrono::nanoseconds length);

  /// Only after advance() was true.
  std::unique_ptr<Stream> take() { return std::move(stream_); }
  const ServerFacts& facts() const { return logIn_->facts(); }
  /// The host and the port that it leads to, as the resolver has named them.
  std::string server() const;

 private:
  bool step(Instant now);
  void shareTime(Instant now);
  std::string timeoutText() const;

  Dialer& dialer_;
  HostLookup lookup_;
  Instant until_;
  Instant addressUntil_;
  bool resolved_ = false;           // the addresses are known
  std::size_t address_ = 0;         // which of them is tried
  std::unique_ptr<Stream> stream_;  // to that one
  std::optional<LogIn> logIn_;      // once the stream is connected
};

}  // namespace lockkeeper::redis
