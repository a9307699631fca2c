#pragma once

#include <Poco/Net/Context.h>

#include <memory>
#include <mutex>
#include <string>

#include "lockkeeper/environment.h"
#include "lockkeeper/redis/redis_options.h"
#include "resp.h"
#include "server_checks.h"
#include "stream.h"

namespace lockkeeper::redis {

/// Makes connections that are ready for commands: connected, logged in, in the right database, and checked to
/// be to a server on which locks can be kept. Thread-safe.
class Connector {
 public:
  /// Throws ConfigError for a CA file that cannot be read.
  Connector(RedisOptions options, Environment environment);

  /// Throws StoreUnavailable, ConfigError or ProtocolError; nothing but the log-in has been sent then.
  std::unique_ptr<Stream> connect(Instant deadline);

  /// What the last connected server keeps after a crash; one line for people.
  std::string durability() const;

  const RedisOptions& options() const { return options_; }
  const Environment& environment() const { return environment_; }
  const std::string& store() const { return store_; }

 private:
  enum class Step { auth, select, setName, replicaWait, info, appendFsync };

  ServerFacts logIn(Stream& stream, Instant deadline);
  void judge(Step step, const Reply& reply) const;
  Reply readReply(Stream& stream, ReplyReader& reader, Instant deadline);
  void note(const ServerFacts& facts);

  const RedisOptions options_;
  const Environment environment_;
  const std::string store_;
  const Poco::Net::Context::Ptr tls_;
  mutable std::mutex mutex_;
  std::string durability_ = "not connected yet";
  std::string notedRunId_;
};

}  // namespace lockkeeper::redis
