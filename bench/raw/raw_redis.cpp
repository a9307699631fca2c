#include "raw_redis.h"

#include <hiredis/hiredis.h>

#include <stdexcept>

namespace lockkeeper::bench {

namespace {

constexpr const char* token = "0123456789abcdef0123456789abcdef";
constexpr const char* releaseScript =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

template <class... Arguments>
Reply call(redisContext* context, const char* format, Arguments... arguments) {
  Reply reply(static_cast<redisReply*>(redisCommand(context, format, arguments...)));
  if (!reply || reply->type == REDIS_REPLY_ERROR) throw std::runtime_error("the raw command failed");
  return reply;
}

}  // namespace

void RawRedis::Free::operator()(redisContext* context) const { redisFree(context); }

RawRedis::RawRedis(std::uint16_t port) : context_(redisConnect("127.0.0.1", port)) {
  if (!context_ || context_->err != 0) throw std::runtime_error("hiredis does not connect");
  const auto sha = call(context_.get(), "SCRIPT LOAD %s", releaseScript);
  releaseSha_.assign(sha->str, static_cast<std::size_t>(sha->len));
}

void RawRedis::pair(const std::string& key) {
  const auto set = call(context_.get(), "SET %s %s NX PX %s", key.c_str(), token, "30000");
  const auto freed = call(context_.get(), "EVALSHA %s 1 %s %s", releaseSha_.c_str(), key.c_str(), token);
  if (set->type != REDIS_REPLY_STATUS || freed->integer != 1)
    throw std::runtime_error("the raw lock was busy");
}

}  // namespace lockkeeper::bench
