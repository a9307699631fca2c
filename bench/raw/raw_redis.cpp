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

std::string load(redisContext* context, std::string_view script) {
  const auto sha = call(context, "SCRIPT LOAD %b", script.data(), script.size());
  return {sha->str, static_cast<std::size_t>(sha->len)};
}

}  // namespace

void RawRedis::Free::operator()(redisContext* context) const { redisFree(context); }

RawRedis::RawRedis(std::uint16_t port) : context_(redisConnect("127.0.0.1", port)) {
  if (!context_ || context_->err != 0) throw std::runtime_error("hiredis does not connect");
  releaseSha_ = load(context_.get(), releaseScript);
}

void RawRedis::ping() { (void)call(context_.get(), "PING"); }

void RawRedis::pair(const std::string& key) {
  addSet(key);
  expect(REDIS_REPLY_STATUS);
  addRelease(key);
  expect(REDIS_REPLY_INTEGER);
}

void RawRedis::pairOnAll(std::span<RawRedis> servers, const std::string& key) {
  for (RawRedis& each : servers) {
    each.addSet(key);
    each.send();
  }
  for (RawRedis& each : servers) each.expect(REDIS_REPLY_STATUS);
  for (RawRedis& each : servers) {
    each.addRelease(key);
    each.send();
  }
  for (RawRedis& each : servers) each.expect(REDIS_REPLY_INTEGER);
}

void RawRedis::addSet(const std::string& key) {
  redisAppendCommand(context_.get(), "SET %s %s NX PX 30000", key.c_str(), token);
}

void RawRedis::addRelease(const std::string& key) {
  redisAppendCommand(context_.get(), "EVALSHA %s 1 %s %s", releaseSha_.c_str(), key.c_str(), token);
}

void RawRedis::send() {
  for (int done = 0; done == 0;) {
    if (redisBufferWrite(context_.get(), &done) != REDIS_OK)
      throw std::runtime_error("the raw command failed");
  }
}

// Sends what has been added, if it is not sent yet.
void RawRedis::expect(int replyType) {
  void* answer = nullptr;
  redisGetReply(context_.get(), &answer);
  const Reply reply(static_cast<redisReply*>(answer));
  if (!reply || reply->type != replyType || (replyType == REDIS_REPLY_INTEGER && reply->integer != 1))
    throw std::runtime_error("the raw lock was busy");
}

}  // namespace lockkeeper::bench
