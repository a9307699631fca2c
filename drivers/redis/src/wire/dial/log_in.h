#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "wire/dial/server_checks.h"
#include "wire/dial/stream.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

struct RedisOptions;

/// Makes a connected stream ready for commands: logged in, in the right database, and checked to be to a
/// server on which locks can be kept. Never blocks. One thread at a time.
class LogIn {
 public:
  /// `store` names the server in messages. Both must outlive this.
  LogIn(const RedisOptions& options, const std::string& store);

  /// Goes on as far as it can. False: once more when awaited() is there. Throws StreamBroken,
  /// StoreUnavailable, ConfigError or ProtocolError; nothing that changes the server has been sent then.
  bool advance(Stream& stream);
  pollfd awaited(const Stream& stream) const;

  /// Only after advance() was true.
  const ServerFacts& facts() const { return facts_; }

 private:
  enum class Step { auth, select, setName, replicaWait, info, appendFsync };

  void accept(Step step, const Reply& reply);
  void refuse(Step step, const Reply& error) const;

  const RedisOptions& options_;
  const std::string& store_;
  std::string commands_;  // what is not sent yet begins at sent_
  std::size_t sent_ = 0;
  std::vector<Step> steps_;
  std::size_t answered_ = 0;
  ReplyReader reader_;
  ServerFacts facts_;
};

}  // namespace lockkeeper::redis
