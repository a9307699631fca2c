#pragma once

#include <Poco/Net/Context.h>

#include <memory>
#include <mutex>
#include <string>

#include "lockkeeper/environment.h"
#include "lockkeeper/redis/redis_options.h"
#include "wire/dial/server_checks.h"
#include "wire/dial/stream.h"

namespace lockkeeper::redis {

/// One server, and how to connect to it. Thread-safe.
class Connector {
 public:
  /// Throws ConfigError for a CA file that cannot be read.
  Connector(RedisOptions options, Environment environment);

  /// Makes a connection that is ready for commands, with a Dial. Blocks until then or until `deadline`.
  /// Throws StoreUnavailable, ConfigError or ProtocolError; nothing but the log-in has been sent then.
  std::unique_ptr<Stream> connect(Instant deadline);

  /// Keeps what a log-in has found out, and tells the listener once for each start of the server.
  void note(const ServerFacts& facts);

  /// What the last connected server keeps after a crash; one line for people.
  std::string durability() const;

  const RedisOptions& options() const { return options_; }
  const Environment& environment() const { return environment_; }
  const std::string& store() const { return store_; }
  const Poco::Net::Context::Ptr& tls() const { return tls_; }

 private:
  const RedisOptions options_;
  const Environment environment_;
  const std::string store_;
  const Poco::Net::Context::Ptr tls_;
  mutable std::mutex mutex_;
  std::string durability_ = "not connected yet";
  std::string notedRunId_;
};

}  // namespace lockkeeper::redis
