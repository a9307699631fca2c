#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/stream/stream.h"
#include "wire/dial/server_checks.h"
#include "wire/protocol/resp.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

struct RedisOptions;

/// What those who connect need of a server.
struct Needs {
  void (*check)(const std::string& store, const ServerFacts& facts,
                const RedisOptions& options) = checkServer;  ///< Throws when it is not right.
  std::string_view permissions = lockPermissions;            ///< For messages.
};

/// Makes a connected stream ready for commands: logged in, in the right database, and checked to be to a
/// server that is right. Never blocks. One thread at a time.
class LogIn {
 public:
  /// `store` names the server in messages. Both must outlive this.
  LogIn(const RedisOptions& options, const std::string& store, const Needs& needs = {});

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
  const Needs needs_;
  std::string commands_;  // what is not sent yet begins at sent_
  std::size_t sent_ = 0;
  std::vector<Step> steps_;
  std::size_t answered_ = 0;
  ReplyReader reader_;
  ServerFacts facts_;
};

}  // namespace lockkeeper::redis
