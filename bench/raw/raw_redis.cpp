#include "raw_redis.h"

#include <hiredis/hiredis.h>

#include <stdexcept>
#include <vector>

namespace lockkeeper::bench {

namespace {

constexpr const char* token = "0123456789abcdef0123456789abcdef";

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

}  // namespace

void RawRedis::Free::operator()(redisContext* context) const { redisFree(context); }

RawRedis::RawRedis(std::uint16_t port) : context_(redisConnect("127.0.0.1", port)) {
  if (!context_ || context_->err != 0) throw std::runtime_error("hiredis does not connect");
  releaseSha_ = load(releaseScript);
}

std::string RawRedis::load(std::string_view script) {
  const Reply sha(
      static_cast<redisReply*>(redisCommand(context_.get(), "SCRIPT LOAD %b", script.data(), script.size())));
  if (!sha || sha->type != REDIS_REPLY_STRING) throw std::runtime_error("the raw script was refused");
  return {sha->str, static_cast<std::size_t>(sha->len)};
}

void RawRedis::run(std::string_view script, std::string_view key,
                   std::initializer_list<std::string_view> arguments) {
  std::vector<std::string_view> words{"EVALSHA", script, "1", key};
  words.insert(words.end(), arguments);
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), lengths.data());
  expect(REDIS_REPLY_INTEGER);
}

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
