#pragma once

#include <Poco/Redis/Client.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockkeeper/store_uri.h"
#include "queue/job_queue.h"

namespace sms_gateway {

/// One connection to Redis by Poco::Redis, made when it is needed and given up after any fault. One thread at
/// a time.
///
/// A reply that was cut on its way looks like a whole one to Poco::Redis: text is filled up with blanks, a
/// number loses its last digits. So ask only for what shows: that a number came at all, or text whose end can
/// be recognised.
class RedisClient {
 public:
  /// `uri` is redis://[user:password@]host[:6379][/db][?passwordFile=path]. Throws lockkeeper::ConfigError
  /// for another scheme.
  explicit RedisClient(const lockkeeper::StoreUri& uri);

  // The reply to one command. Each throws QueueDown, also when the reply is an error or of another type.

  std::int64_t number(const std::vector<std::string>& words);
  /// Empty for nil.
  std::optional<std::string> text(const std::vector<std::string>& words);
  std::vector<std::string> list(const std::vector<std::string>& words);

  /// Ends the connection and throws QueueDown.
  [[noreturn]] void giveUp(const std::string& why);

 private:
  template <class Value>
  Value ask(const std::vector<std::string>& words,
            const std::function<Value(const Poco::Redis::RedisType&)>& read);
  Poco::Redis::Client& connected();

  const lockkeeper::StoreUri uri_;
  int database_ = 0;
  std::string password_;
  std::unique_ptr<Poco::Redis::Client> client_;
};

}  // namespace sms_gateway
